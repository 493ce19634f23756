"""The command line `nodus`: one module per verb or noun, on the public client only."""
