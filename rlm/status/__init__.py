"""Reports on partitions and processes for users, commands and metrics. Pure."""
