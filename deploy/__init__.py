"""What runs rlm: images, configurations, rights, rules and boards."""
