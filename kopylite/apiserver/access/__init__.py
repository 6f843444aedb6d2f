"""Who is asking, and whether they may: credentials, tokens, authorizers, and the reviews that ask about them."""
