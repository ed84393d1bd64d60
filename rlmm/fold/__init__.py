"""The fold of one record into the known state: the rules, and the state."""
