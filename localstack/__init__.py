"""The local cloud: one emulated AWS on loopback, deployed with the ordinary CDK command line."""
