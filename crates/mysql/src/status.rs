//! What a server reports about itself, once a second.
