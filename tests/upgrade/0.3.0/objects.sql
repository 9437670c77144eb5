-- What 0.3.0 adds to the objects of 0.2.0

\ir ../0.2.0/objects.sql
