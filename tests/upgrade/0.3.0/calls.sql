-- What 0.3.0 adds to the calls of 0.2.0

\ir ../0.2.0/calls.sql
