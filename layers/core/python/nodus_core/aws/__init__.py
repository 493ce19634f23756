"""Adapters of the ports to AWS: the only package that imports boto3 and botocore."""
