import { idOf } from '../../../catalog/lists/entry.ts';
import type { Json, JsonObject, MediaKind, ProviderConfig } from '../../../catalog/model.ts';
import type { ModelEntry } from '../../../catalog/schema.ts';
import { DocumentError, type ChosenField, type DocumentField, type Documents } from '../../offer/document.ts';
import { fieldsOf, kindOf } from './fields.ts';
import { askMachine } from './machine.ts';
import { readWorkflow, seed_fields, type Workflow } from './workflow.ts';

/** Makes a model of a workflow that an operator has. */
export function openDocuments(
  default_base_url: string,
  keyOf: (config: ProviderConfig) => Record<string, string>,
): Documents {
  return {
    noun: 'workflow',
    ask: (document, config, parts) => {
      const place = { ...config, base_url: config.base_url ?? default_base_url };
      return askMachine(workflowIn(document), place, { ...parts, headers: keyOf(config) });
    },
    read: (document, facts) => {
      const workflow = workflowIn(document);
      return { kind: kindOf(workflow), fields: fieldsOf(workflow, facts) };
    },
    entry: entryOf,
  };
}

const entryOf: Documents['entry'] = (document, { id: own_id, name, kind, fields }, { provider, prefix, facts }) => {
  const groups = groupsOf(fieldsOf(workflowIn(document), facts), fields);
  const id = idOf(own_id, prefix);
  if (id === undefined) throw new DocumentError('id', 'The id must have letters, digits and . _ - : / only.');
  const inputs = [...groups].map(([field, group]): [string, Json] => {
    const targets = group.map(({ target }) => target);
    return [field, targets.length === 1 ? (targets[0] ?? '') : targets];
  });
  const counts = kind === 'image' && groups.has('n');
  return {
    id,
    kind,
    name: name ?? titleOf(own_id.split('/').at(-1) ?? own_id),
    input_schema: schemaOf(groups),
    ...(counts && { estimate: { image: '$input.n' } }),
    routes: [
      {
        provider,
        timeout: timeouts[kind],
        options: { workflow: document, inputs: Object.fromEntries(inputs) },
      },
    ],
  } satisfies ModelEntry;
};

/** The wait for the machine counts, too. */
const timeouts: Record<MediaKind, { start: string; total: string }> = {
  image: { start: '15m', total: '30m' },
  audio: { start: '15m', total: '45m' },
  video: { start: '1h', total: '2h' },
};

function workflowIn(document: Json): Workflow {
  const workflow = readWorkflow(document);
  if (typeof workflow !== 'string') return workflow;
  throw new DocumentError('document', `This ${workflow}.`);
}

type Group = (DocumentField & Pick<ChosenField, 'maximum'>)[];

const name_form = /^[a-z][a-z0-9_]{0,63}$/;

/** Chosen fields by their names. Throws DocumentError. */
function groupsOf(all: readonly DocumentField[], chosen: readonly ChosenField[]): Map<string, Group> {
  if (chosen.length === 0) throw new DocumentError('fields', 'Tick at least one field: callers could set nothing.');
  const groups = new Map<string, Group>();
  const seen = new Set<string>();
  for (const { target, name, maximum } of chosen) {
    const field = all.find((one) => one.target === target);
    if (!field) throw new DocumentError('fields', `The workflow has no field ${target}.`);
    if (seen.has(target)) throw new DocumentError('fields', `${target} can be chosen once.`);
    seen.add(target);
    if (!name_form.test(name)) {
      throw new DocumentError('fields', `The name of ${target} must have lower-case letters, digits and underscores.`);
    }
    const group = groups.get(name) ?? [];
    if (group.some(({ type }) => type !== field.type)) {
      throw new DocumentError('fields', `Fields that are called ${name} are of several types. Give one another name.`);
    }
    const { maximum: _, ...rest } = field;
    groups.set(name, [...group, { ...rest, ...(maximum !== undefined && { maximum }) }]);
  }
  return groups;
}

function schemaOf(groups: ReadonlyMap<string, Group>): JsonObject {
  const properties = [...groups].map(([name, group]): [string, JsonObject] => [name, propertyOf(name, group)]);
  const required = [...groups].filter(([name, group]) => isRequired(name, group)).map(([name]) => name);
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

/** Without a file of the caller the machine would take one of its own. */
function isRequired(name: string, [first]: Group): boolean {
  return name === 'prompt' || first?.type === 'image' || first?.type === 'video' || first?.type === 'audio';
}

const text_length_max = 8_000;

function propertyOf(name: string, group: Group): JsonObject {
  const [first] = group;
  if (!first) return {};
  const { type, value, field, choices } = first;
  const description = descriptions[name];
  const about = { title: name === 'n' ? 'Number' : titleOf(name), ...(description !== undefined && { description }) };
  const maxima = group.flatMap(({ maximum }) => maximum ?? []);
  const most = maxima.length > 0 ? { maximum: Math.min(...maxima) } : {};
  switch (type) {
    case 'text': {
      if (choices) return { type: 'string', ...about, enum: [...choices], default: value };
      const text = { type: 'string', ...about, maxLength: text_length_max };
      if (name === 'prompt') return { ...text, minLength: 1 };
      return String(value).length > text_length_max ? text : { ...text, default: value };
    }
    case 'integer':
    case 'number': {
      if (seed_fields.has(field)) return { type, ...about, minimum: 0, maximum: 2 ** 32 - 1 };
      const initial = typeof value === 'number' ? Math.min(value, maxima.at(0) ?? value) : value;
      return { type, ...about, minimum: first.minimum ?? minimumOf(field, value), ...most, default: initial };
    }
    case 'boolean':
      return { type, ...about, default: value };
    default:
      return { type: 'string', ...about, 'x-media': type };
  }
}

const descriptions: Record<string, string> = {
  prompt: 'What it shows.',
  negative_prompt: 'What it does not show.',
  seed: 'The same number makes the same again. Without one, each is another.',
  width: 'In pixels.',
  height: 'In pixels.',
  n: 'Each is paid for.',
  mask: 'Where it is changed.',
};

function minimumOf(field: string, value: string | number | boolean): number {
  if (typeof value === 'number' && value < 0) return value;
  if (/width|height/.test(field)) return 16;
  return /steps|batch|length/.test(field) ? 1 : 0;
}

function titleOf(name: string): string {
  const words = name.replaceAll(/[_-]+/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
