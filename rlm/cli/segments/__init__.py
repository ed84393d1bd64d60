"""Commands on the stored segments of a topic: rlm segments."""
