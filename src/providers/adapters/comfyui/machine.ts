import { isObject, type Json, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import type { Guard } from '../../../net/guard.ts';
import { openUpstream } from '../../http/http.ts';
import { objectIn } from '../../http/reading.ts';
import type { DocumentFacts, FieldFacts } from '../../offer/document.ts';
import type { Workflow, WorkflowNode } from './workflow.ts';

/**
 * The machine's own words for the nodes of a workflow: `/object_info/CLASS` has the type, the range and the choices of
 * each field (server.py and INPUT_TYPES of nodes.py, github.com/Comfy-Org/ComfyUI, read 2026-11-28).
 */

const classes_max = 100;
const at_once = 4;
const limit_ms = 15_000;

/** Asks the machine for the nodes of a workflow. What it does not say is left out; it never throws. */
export async function askMachine(
  workflow: Workflow,
  config: ProviderConfig & { base_url: string },
  { guard, headers, signal }: { guard: Guard; headers: Record<string, string>; signal: AbortSignal },
): Promise<DocumentFacts> {
  const upstream = openUpstream(config, { guard }, { headers });
  const limited = AbortSignal.any([signal, AbortSignal.timeout(limit_ms)]);
  const classes = [...new Set([...workflow.values()].map(({ class_type }) => class_type))].slice(0, classes_max);
  const infos = new Map<string, JsonObject | 'missing'>();
  const ask = async () => {
    for (let name = classes.shift(); name !== undefined; name = classes.shift()) {
      const path = `/object_info/${encodeURIComponent(name)}`;
      const answer = await upstream.call({ method: 'GET', path, signal: limited });
      if (!answer.ok) continue;
      const info = answer.object()[name];
      infos.set(name, isObject(info) ? info : 'missing');
    }
  };
  try {
    await Promise.all(Array.from({ length: at_once }, ask));
  } catch {
    return { fields: new Map(), problems: ['The machine did not say which values its nodes take.'] };
  } finally {
    void upstream.close();
  }
  return factsOf(workflow, infos);
}

function factsOf(workflow: Workflow, infos: ReadonlyMap<string, JsonObject | 'missing'>): DocumentFacts {
  const fields = new Map<string, FieldFacts>();
  const problems = new Set<string>();
  for (const [id, node] of workflow) {
    const info = infos.get(node.class_type);
    if (info === 'missing') problems.add(`The machine has no node ${node.class_type}. Install it there.`);
    if (info === undefined || info === 'missing') continue;
    for (const [field, value] of Object.entries(node.inputs)) {
      const facts = fieldFacts(info, field);
      if (!facts) continue;
      fields.set(`${id}.${field}`, facts);
      const problem = problemOf(node, field, value, facts);
      if (problem !== undefined) problems.add(problem);
    }
  }
  return { fields, problems: [...problems] };
}

/** Longer lists of choices are those of files, which change every day. */
const choices_max = 200;

/** A field is `[type, { min, max, options }]`; a list in the place of its type is its choices. */
function fieldFacts(info: JsonObject, field: string): FieldFacts | undefined {
  const input = objectIn(info, 'input');
  const spec = objectIn(input, 'required')[field] ?? objectIn(input, 'optional')[field];
  if (!Array.isArray(spec)) return undefined;
  const [type, more] = spec;
  const options = isObject(more) ? more : {};
  const choices = textsIn(Array.isArray(type) ? type : type === 'COMBO' ? options['options'] : undefined);
  if (choices) return choices.length <= choices_max ? { type: 'text', choices } : { type: 'text' };
  switch (type) {
    case 'INT':
    case 'FLOAT':
      return {
        type: type === 'INT' ? 'integer' : 'number',
        ...limit('minimum', options['min']),
        ...limit('maximum', options['max']),
      };
    case 'BOOLEAN':
      return { type: 'boolean' };
    default:
      return type === 'STRING' ? { type: 'text' } : undefined;
  }
}

function limit(name: 'minimum' | 'maximum', value: Json | undefined): Partial<Record<'minimum' | 'maximum', number>> {
  return typeof value === 'number' && Number.isSafeInteger(Math.trunc(value)) ? { [name]: value } : {};
}

/** The choices, if all of them are texts. */
function textsIn(value: Json | undefined): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((item) => typeof item === 'string');
  return texts.length === value.length && texts.length > 0 ? texts : undefined;
}

function problemOf(
  { class_type, title }: WorkflowNode,
  field: string,
  value: Json,
  { choices }: FieldFacts,
): string | undefined {
  if (!choices || typeof value !== 'string' || choices.includes(value) || isUpload(field)) return undefined;
  return `${title ?? class_type}: ${field} is ${value}, which the machine does not have.`;
}

/** The lists of these are the files in its folder `input`, where uploads go. */
function isUpload(field: string): boolean {
  return /^(?:image|mask|video|audio|file)$/.test(field);
}
