import pg from 'pg';

/** A table as the catalogue of the database describes it. */
export type Table = {
  /** `public.tasks`; what its part of a backup is called. */
  name: string;
  /** Those that are written; what the database computes is left out. */
  columns: string[];
};

/** Tables of what running nodes have taken, of their disks and the backups they made: they say nothing of another place. */
const of_running_nodes = ['public.leases', 'public.lessees', 'public.scheduled_backups', 'public.disks'];

/**
 * A table that grows with use, as its module tells backups: these read it in parts, after their moment. In conditions `r`
 * is a row, and `m` its account's row of `moments`: how many `entries` its ledger had, the time `at`, and `summed_to`, a
 * time after which the entries have come that were in no sums yet.
 */
export type GrowingTable = {
  name: string;
  /** The account and these columns are its primary key. */
  keys: readonly string[];
  /** The row set of those that may still change, and are few: they are read at the moment itself. */
  changing?: string;
  /** The condition of rows that were not yet there, or not yet as they are. */
  is_later: string;
  /** Columns whose value at the moment is another than now. */
  values?: Record<string, string>;
  /** About how many bytes a row has, with those of large parts, as an expression; no row has many where it is absent. */
  bytes?: string;
  /** The table of what belongs to its rows, and the columns that have their keys. */
  parts?: { name: string; keys: readonly string[] };
};

/** Schemas in which our migrations make tables. */
const schemas = ['public', 'auth'];

/**
 * Lists every table of ours from the database itself, so that none can be forgotten: those of our schemas,
 * but what only running nodes have, and `more` by their full names. Whoever refers to another one comes after it. Throws if they refer to
 * each other in a circle.
 */
export async function listTables(client: pg.Client, more: readonly string[]): Promise<Table[]> {
  const { rows } = await client.query<Table & { needs: string[] }>(
    `with ours as (
       select c.oid, n.nspname || '.' || c.relname as name
         from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where (n.nspname = any($1) or n.nspname || '.' || c.relname = any($2))
          and n.nspname || '.' || c.relname <> all($3) and c.relkind in ('r', 'p') and not c.relispartition
          and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'))
     select o.name,
            array(select a.attname::text from pg_attribute a
                   where a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum) as columns,
            array(select distinct p.name from ours p join pg_constraint f on f.confrelid = p.oid
                   where f.contype = 'f' and p.oid <> o.oid
                     and (f.conrelid = o.oid or f.conrelid in (select relid from pg_partition_tree(o.oid)))) as needs
       from ours o order by o.name`,
    [schemas, more, of_running_nodes],
  );
  return inOrder(rows).map(({ name, columns }) => ({ name, columns }));
}

function inOrder<T extends { name: string; needs: string[] }>(tables: readonly T[]): T[] {
  const ordered: T[] = [];
  let waiting = [...tables];
  while (waiting.length > 0) {
    const ready = waiting.filter(({ needs }) => needs.every((need) => ordered.some(({ name }) => name === need)));
    if (ready.length === 0)
      throw new Error(`tables refer to each other: ${waiting.map(({ name }) => name).join(', ')}`);
    ordered.push(...ready);
    waiting = waiting.filter((table) => !ready.includes(table));
  }
  return ordered;
}

/** Returns the name of a table as SQL. */
export function sqlName({ name }: Pick<Table, 'name'>): string {
  return name.split('.').map(pg.escapeIdentifier).join('.');
}

/** Returns the columns of a table as SQL, in their order. */
export function sqlColumns({ columns }: Pick<Table, 'columns'>): string {
  return columns.map(pg.escapeIdentifier).join(', ');
}
