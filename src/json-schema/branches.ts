import { isDeepStrictEqual } from 'node:util';
import type { ErrorObject } from 'ajv';
import { isRecord } from '../lib/is-record.ts';
import { fragmentAt, valueAt } from '../lib/json-pointer.ts';

type SchemaNode = Record<string, unknown>;

/** A schema that a group of errors tried, behind its references, and all that can be reached from it. */
type Branch = { schema: SchemaNode; reach: ReadonlySet<unknown> };

/**
 * Keeps, of the errors that Ajv reports for `anyOf` and `oneOf` (those of every branch and one more), those of the
 * branch that the value fits best, or one that tells what all branches ask for. Drops the inner errors of `contains`
 * and `propertyNames`, and `if`, which says nothing beside its inner errors.
 */
export function pickBranches(errors: readonly ErrorObject[], schema: object): ErrorObject[] {
  const reach_cache = new Map<SchemaNode, Set<unknown>>();
  const relevant: ErrorObject[] = [];
  for (const error of errors) {
    const inner_name = error.propertyName !== undefined && error.keyword !== 'propertyNames';
    if (error.keyword === 'if' || inner_name) continue;
    const branches = branchesOf(error, schema, reach_cache);
    if (branches === undefined) relevant.push(error);
    else relevant.push(...chosen(error, takeBranchErrors(relevant, error, branches, schema)));
  }
  return relevant;
}

/** The schema object whose keyword failed. Exact when Ajv runs with `verbose`. */
export function schemaOf(error: ErrorObject, schema: object): SchemaNode {
  const node: unknown = error.parentSchema ?? fragmentAt(schema, error.schemaPath.replace(/\/[^/]*$/, ''));
  return isSchema(node) ? node : {};
}

function isSchema(value: unknown): value is SchemaNode {
  return isRecord(value);
}

/** The branches of `group`; undefined if its keyword has none. */
function branchesOf(group: ErrorObject, schema: object, cache: Map<SchemaNode, Set<unknown>>): Branch[] | undefined {
  if (group.keyword !== 'anyOf' && group.keyword !== 'oneOf' && group.keyword !== 'contains') return undefined;
  const tried = [valueAt(schemaOf(group, schema), [group.keyword])].flat();
  return tried.map((branch) => {
    const node = isSchema(branch) ? behindReferences(branch, schema) : {};
    const reach = cache.get(node) ?? schemasBelow(node, schema);
    cache.set(node, reach);
    return { schema: node, reach };
  });
}

const hops_max = 32;

/** Follows local references from `branch` to the schema that says something. */
function behindReferences(branch: SchemaNode, schema: object): SchemaNode {
  let node = branch;
  for (let hops = 0; hops < hops_max; hops++) {
    const reference = node['$ref'];
    const next = typeof reference === 'string' ? fragmentAt(schema, reference) : undefined;
    if (!isSchema(next) || Object.keys(node).length > 1) break;
    node = next;
  }
  return node;
}

/** `branch` and everything that can be reached from it, references included. */
function schemasBelow(branch: SchemaNode, schema: object): Set<unknown> {
  const reached = new Set<object>([branch]);
  for (const node of reached) {
    for (const [key, value] of Object.entries(node)) {
      const below: unknown = key === '$ref' && typeof value === 'string' ? fragmentAt(schema, value) : value;
      if (typeof below === 'object' && below !== null) reached.add(below);
    }
  }
  return reached;
}

/**
 * Takes the errors of the branches of `group` off the end of `kept`, where Ajv has put them, branch
 * after branch, and returns them by branch. An error of a schema that several branches share belongs
 * to the branch whose turn it is, or to the next one if that has the same error already.
 */
function takeBranchErrors(
  errors: ErrorObject[],
  group: ErrorObject,
  branches: readonly Branch[],
  schema: object,
): ErrorObject[][] {
  const homes = errors.map((error) => possibleBranches(error, group, branches, schema));
  const start = homes.findLastIndex((possible) => possible.length === 0) + 1;
  const by_branch: ErrorObject[][] = branches.map(() => []);
  let current = 0;
  for (const [index, error] of errors.splice(start).entries()) {
    const possible = homes[start + index] ?? [];
    const free = possible.filter(
      (branch) => branch >= current && !by_branch[branch]?.some((other) => isTwin(error, other)),
    );
    current = free[0] ?? possible.at(-1) ?? current;
    by_branch[current]?.push(error);
  }
  return by_branch;
}

function isTwin(a: ErrorObject, b: ErrorObject): boolean {
  return a.instancePath === b.instancePath && a.schemaPath === b.schemaPath && isDeepStrictEqual(a.params, b.params);
}

/** Numbers of the branches that `error` can come from; none if it is not of this group. */
function possibleBranches(
  error: ErrorObject,
  group: ErrorObject,
  branches: readonly Branch[],
  schema: object,
): number[] {
  const at_group = error.instancePath === group.instancePath;
  if (!at_group && !error.instancePath.startsWith(`${group.instancePath}/`)) return [];
  const home = schemaOf(error, schema);
  const direct = branches.findIndex((branch) => branch.schema === home);
  if (at_group && direct !== -1) return [direct];
  return branches.flatMap((branch, index) => {
    const below = branch.reach.has(home) || error.schemaPath.startsWith(`${group.schemaPath}/${index}/`);
    return below ? [index] : [];
  });
}

function chosen(group: ErrorObject, by_branch: readonly ErrorObject[][]): ErrorObject[] {
  if (group.keyword === 'contains' || Array.isArray(group.params['passingSchemas'])) return [group];
  const tried = by_branch.filter((errors) => errors.length > 0);
  const merged = mergedTypes(group, tried) ?? mergedChoices(group, tried) ?? mergedRequired(group, tried);
  if (merged) return [merged];
  const best = tried.toSorted((a, b) => misfit(group, a) - misfit(group, b))[0];
  return best ?? [group];
}

/** Returns the distance of a value from a branch: another type counts most, then another choice, then each mistake. */
function misfit(group: ErrorObject, errors: readonly ErrorObject[]): number {
  let sum = 0;
  for (const error of errors) {
    const at_group = error.instancePath === group.instancePath;
    const is_choice = error.keyword === 'enum' || error.keyword === 'const' || error.keyword === 'false schema';
    if (error.keyword === 'type' && at_group) sum += 100_000;
    else if (is_choice) sum += at_group ? 50_000 : 1_000;
    else sum += 1;
  }
  return sum;
}

/** Every branch wants another type: `must be a string or a number`. */
function mergedTypes(group: ErrorObject, tried: readonly ErrorObject[][]): ErrorObject | undefined {
  const wrong = tried.map((errors) =>
    errors.find((error) => error.keyword === 'type' && error.instancePath === group.instancePath),
  );
  const type_errors = wrong.filter((error) => error !== undefined);
  if (type_errors.length === 0 || type_errors.length < tried.length) return undefined;
  const type = [...new Set(type_errors.flatMap((error): unknown => error.params['type']).flat())];
  return { ...group, keyword: 'type', params: { type } };
}

/** Every branch wants another value of the same field: `must be one of …`. */
function mergedChoices(group: ErrorObject, tried: readonly ErrorObject[][]): ErrorObject | undefined {
  const choices = tried.map((errors) =>
    errors.filter((error) => error.keyword === 'enum' || error.keyword === 'const'),
  );
  const path = choices[0]?.[0]?.instancePath;
  const at_path = choices.map((errors) => errors.find((error) => error.instancePath === path));
  const same = at_path.filter((error) => error !== undefined);
  if (path === undefined || same.length < tried.length) return undefined;
  const allowedValues = same.flatMap((error): unknown[] =>
    error.keyword === 'const' ? [error.params['allowedValue']] : error.params['allowedValues'],
  );
  return { ...group, instancePath: path, keyword: 'enum', params: { allowedValues: [...new Set(allowedValues)] } };
}

/** Every branch misses a field of its own: `input.image or input.video is required`. */
function mergedRequired(group: ErrorObject, tried: readonly ErrorObject[][]): ErrorObject | undefined {
  const alone = tried.flatMap((errors) => (errors.length === 1 ? errors : []));
  const missing = alone.filter((error) => error.keyword === 'required' && error.instancePath === group.instancePath);
  if (missing.length < 2 || missing.length < tried.length) return undefined;
  const missingProperties = [...new Set(missing.map((error): unknown => error.params['missingProperty']))];
  return { ...group, keyword: 'required', params: { missingProperties } };
}
