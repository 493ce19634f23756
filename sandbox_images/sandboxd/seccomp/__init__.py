"""Filters of system calls: the whole sandbox's, which the local launcher installs, and that of each command.

Standard library only, and no other module of the daemon, so that the launcher can import it as well.
"""
