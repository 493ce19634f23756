"""The ECS agent of the local cloud: runs each task of the cluster as a bubblewrap sandbox."""
