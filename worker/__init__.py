"""The consumers' side: handlers, retries, the ledger, and the clients that submit."""
