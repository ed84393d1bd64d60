"""An example of plug-ins for kafka-rlm; see docs/plugins.md."""
