"""One client connection: passes on, writes, splices and watches its bytes."""
