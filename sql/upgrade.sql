-- Each release, updated, and the one that is being developed: tests/upgrade/release.sql says what is tested.
-- make install does not install the scripts of releases; servers of scripts/cluster have them.
SELECT count(*) = 0 AS missing FROM pg_available_extension_versions WHERE name = 'gputext' AND version = '0.1.0' \gset
\if :missing
\quit
\endif
\getenv directory PG_ABS_SRCDIR
\set test :directory '/tests/upgrade/release.sql'
\set release 0.1.0
\i :test
\set release 0.2.0
\i :test
\set release 0.3.0
\i :test
