-- What the extension consists of, without object identifiers: a line for each property that an installation and an
-- update must give alike. The extension's own comment is that of the release by which it was created: no update changes it.

CREATE FUNCTION catalogue() RETURNS TABLE (object text, property text, value text) LANGUAGE sql
SET search_path = pg_catalog, public AS $$
    WITH member AS (
        SELECT d.classid, d.objid, identity.type || ' ' || identity.identity AS object
        FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid AND d.refclassid = 'pg_extension'::regclass,
             pg_identify_object(d.classid, d.objid, 0) AS identity
        WHERE e.extname = 'gputext' AND d.deptype = 'e'
    ), described AS (
        SELECT object, jsonb_build_object(
            'comment', obj_description(objid, classid::regclass::name),
            'privileges at creation', (SELECT i.initprivs::text FROM pg_init_privs i
                                       WHERE (i.classoid, i.objoid, i.objsubid) = (classid, objid, 0))) AS properties
        FROM member
        UNION ALL
        SELECT object, jsonb_build_object(
            'arguments', pg_get_function_arguments(p.oid), 'result', pg_get_function_result(p.oid), 'kind', prokind,
            'language', (SELECT lanname FROM pg_language l WHERE l.oid = prolang), 'volatility', provolatile,
            'parallel', proparallel, 'strict', proisstrict, 'set', proretset, 'cost', procost, 'rows', prorows,
            'security definer', prosecdef, 'leakproof', proleakproof, 'variadic', provariadic::regtype,
            'support', prosupport, 'library', probin, 'source', prosrc, 'settings', proconfig, 'privileges', proacl)
        FROM member JOIN pg_proc p ON (classid, objid) = ('pg_proc'::regclass, p.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'kind', aggkind, 'transition', aggtransfn::regprocedure, 'final', aggfinalfn::regprocedure,
            'combine', aggcombinefn::regproc, 'serialize', aggserialfn, 'deserialize', aggdeserialfn,
            'moving', aggmtransfn, 'final changes', aggfinalmodify, 'final extra', aggfinalextra,
            'state', aggtranstype::regtype, 'space', aggtransspace, 'initial', agginitval, 'sort', aggsortop::regoperator)
        FROM member JOIN pg_aggregate a ON (classid, objid) = ('pg_proc'::regclass, a.aggfnoid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'length', typlen, 'by value', typbyval, 'kind', typtype, 'category', typcategory, 'preferred', typispreferred,
            'defined', typisdefined, 'delimiter', typdelim, 'input', typinput, 'output', typoutput, 'receive', typreceive,
            'send', typsend, 'modifiers', typmodin, 'analyze', typanalyze, 'alignment', typalign, 'storage', typstorage,
            'not null', typnotnull, 'base', typbasetype::regtype, 'default', typdefault, 'collation', typcollation::regcollation,
            'privileges', typacl,
            'constraints', (SELECT array_agg(pg_get_constraintdef(c.oid) ORDER BY conname) FROM pg_constraint c
                            WHERE contypid = t.oid))
        FROM member JOIN pg_type t ON (classid, objid) = ('pg_type'::regclass, t.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'function', oprcode, 'result', oprresult::regtype, 'commutator', oprcom::regoperator,
            'negator', oprnegate::regoperator, 'merges', oprcanmerge, 'hashes', oprcanhash, 'restrict', oprrest, 'join', oprjoin)
        FROM member JOIN pg_operator o ON (classid, objid) = ('pg_operator'::regclass, o.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'method', (SELECT amname FROM pg_am WHERE oid = opcmethod), 'type', opcintype::regtype, 'default', opcdefault,
            'stored', opckeytype::regtype, 'family', (SELECT opfname FROM pg_opfamily f WHERE f.oid = opcfamily))
        FROM member JOIN pg_opclass c ON (classid, objid) = ('pg_opclass'::regclass, c.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'operators', (SELECT array_agg(format('%s %s %s', amopstrategy, amopopr::regoperator, amoppurpose) ORDER BY amopstrategy)
                          FROM pg_amop WHERE amopfamily = f.oid),
            'functions', (SELECT array_agg(format('%s %s', amprocnum, amproc::regprocedure) ORDER BY amprocnum)
                          FROM pg_amproc WHERE amprocfamily = f.oid))
        FROM member JOIN pg_opfamily f ON (classid, objid) = ('pg_opfamily'::regclass, f.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'function', castfunc::regprocedure, 'context', castcontext, 'method', castmethod)
        FROM member JOIN pg_cast c ON (classid, objid) = ('pg_cast'::regclass, c.oid)
        UNION ALL
        SELECT object, jsonb_build_object(
            'kind', relkind, 'privileges', replace(relacl::text, quote_ident(relowner::regrole::text), 'owner'),
            'options', reloptions, 'query', pg_get_viewdef(r.oid),
            'columns', (SELECT array_agg(format('%s %s %s', attname, format_type(atttypid, atttypmod), col_description(r.oid, attnum))
                                         ORDER BY attnum)
                        FROM pg_attribute WHERE attrelid = r.oid AND attnum > 0 AND NOT attisdropped))
        FROM member JOIN pg_class r ON (classid, objid) = ('pg_class'::regclass, r.oid)
        UNION ALL
        SELECT 'extension', jsonb_build_object(
            'version', extversion, 'relocatable', extrelocatable, 'configuration', extconfig)
        FROM pg_extension e WHERE extname = 'gputext'
    )
    SELECT object, key, value FROM described, jsonb_each_text(properties)
$$;
