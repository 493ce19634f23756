"""What AWS does to its callers and an emulator never does, on purpose: for tests of the deployed local cloud.

Nothing here is loaded unless the cloud is started with NODUS_FAULTS=1, and nothing goes wrong until a test says how
often (`control.py`). Only calls of functions are disturbed: never those of people, of CDK or of the ECS agent.
"""
