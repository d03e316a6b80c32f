import type { Queryable } from '../../src/db/database.ts';

/**
 * Returns the schema of a database as SQL that people read: tables with their constraints, indexes and triggers, views,
 * the functions that CHECKs call. Of the functions that have a file there is only the head. PostgreSQL writes each
 * part, so that two databases have the same text if they have the same schema.
 */
export async function schemaText(db: Queryable): Promise<string> {
  const { definitions, heads } = await functions(db);
  const text = [...(await relations(db)), ...definitions, heads.join('\n')].join('\n\n');
  return `${heading}\n${text}\n`
    .replaceAll('timestamp with time zone', 'timestamptz')
    .replaceAll('public.', '')
    .replaceAll(/^(CREATE TRIGGER .*?) (FOR EACH .*)$/gm, '$1\n  $2');
}

const heading = `-- The schema of the database, which sql/migrations and sql/functions come to.
-- Written by "npm run schema", and compared by a test: change those, never this file.
`;

/** Schemas in which our migrations make tables. Names in them are short, as on the search path. */
const schemas = "('public', 'auth')";

async function relations(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ name: string; kind: string; text: string; after: string[] }>(
    `select c.oid::regclass::text as name, c.relkind as kind,
            case c.relkind when 'v' then pg_get_viewdef(c.oid)
              else concat_ws(E',\\n', ${columns}, ${constraints}) || E'\\n)' || coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '')
            end as text,
            array(${indexes}) || array(${triggers}) as after
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ${schemas} and c.relkind in ('r', 'v', 'p')
      order by n.nspname desc, c.relkind, c.relname`,
  );
  return rows.map(({ name, kind, text, after }) => {
    const create = kind === 'v' ? `create view ${name} as\n${text}` : `create table ${name} (\n${text};`;
    return [create, ...after.map((each) => `${each};`)].join('\n');
  });
}

const columns = `(select string_agg('  ' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
      || case when a.attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''),
      E',\\n' order by a.attnum)
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)`;

const constraints = `(select string_agg('  constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid),
      E',\\n' order by k.contype = 'c', k.contype = 'f', k.conname)
    from pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'u', 'c', 'f'))`;

const indexes = `select pg_get_indexdef(i.indexrelid) from pg_index i
   where i.indrelid = c.oid and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = c.oid)
   order by 1`;

const triggers = `select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal order by 1`;

async function functions(db: Queryable): Promise<{ definitions: string[]; heads: string[] }> {
  const rows = await db.query<{ head: string; definition: string; has_file: boolean }>(
    `select p.proname || '(' || pg_get_function_arguments(p.oid) || ') returns ' || pg_get_function_result(p.oid) as head,
            pg_get_functiondef(p.oid) as definition,
            coalesce(obj_description(p.oid, 'pg_proc'), '') like 'medley %' as has_file
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname in ${schemas} order by p.oid::regprocedure::text`,
  );
  return {
    definitions: rows.filter(({ has_file }) => !has_file).map(({ definition }) => `${definition.trim()};`),
    heads: rows.filter(({ has_file }) => has_file).map(({ head }) => `-- function ${head}`),
  };
}

/** Every function with its whole text and settings: what `schemaText` leaves to the files. */
export async function functionTexts(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ text: string }>(
    `select pg_get_functiondef(p.oid) || coalesce(obj_description(p.oid, 'pg_proc'), '') as text from pg_proc p
      where p.pronamespace = 'public'::regnamespace order by p.oid::regprocedure::text`,
  );
  return rows.map(({ text }) => text);
}
