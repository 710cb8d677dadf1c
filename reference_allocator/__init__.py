"""The known-good target: a unified KV-cache allocator without hidden host-device synchronisation."""
