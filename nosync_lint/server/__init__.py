"""The language server: diagnostics, fixes and explanations in an editor. Its modules need the extra `lsp`, except for
`worker`, which runs the linter in processes of its own, and `messages`."""
