"""The only way out of a sandbox: a proxy that judges each connection by the sandbox's egress policy (README.md)."""
