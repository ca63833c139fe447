//! What fio's words mean.
