"""The effect of one record on the known state: the rules, and the state."""
