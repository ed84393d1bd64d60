"""The configuration file: read once into frozen sections; what files tell is checked at once.

Sections and their keys are rlm.config.sections, the whole rlm.config.load. Nothing here speaks to
the cluster or to the store's service.
"""
