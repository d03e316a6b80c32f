import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';

/**
 * A workflow in ComfyUI's API format: nodes by id, each `{ class_type, inputs, _meta: { title } }`. A value of `inputs`
 * that is a list is a link to the output of another node.
 */
export type Workflow = ReadonlyMap<string, WorkflowNode>;

export type WorkflowNode = { class_type: string; title: string | undefined; inputs: JsonObject };

/** A field of a node, as the options of a route name it. */
export type Target = { node: string; field: string };

/** Returns the nodes of a workflow, or the reason why it is none. */
export function readWorkflow(value: Json | undefined): Workflow | string {
  if (!isObject(value)) return 'must be a workflow in the API format, or the name of its file';
  if (Array.isArray(value['nodes'])) {
    return 'is a workflow as the editor saves it: export it with “Export (API)” in the menu “Workflow”';
  }
  const nodes = new Map<string, WorkflowNode>();
  for (const [id, node] of Object.entries(value)) {
    const { class_type, inputs, _meta } = isObject(node) ? node : {};
    if (typeof class_type !== 'string' || !isObject(inputs)) return `has the node ${id} without class_type or inputs`;
    const title = isObject(_meta) && typeof _meta['title'] === 'string' ? _meta['title'] : undefined;
    nodes.set(id, { class_type, title, inputs });
  }
  return nodes.size === 0 ? 'has no nodes' : nodes;
}

/** Returns the id of the node that is called so, by its id or its title; else the reason why there is none. */
export function findNode(workflow: Workflow, name: string): { id: string } | string {
  if (workflow.has(name)) return { id: name };
  const ids = [...workflow].filter(([, { title }]) => title === name).map(([id]) => id);
  const [id] = ids;
  if (id === undefined) return `there is no node ${name}`;
  return ids.length === 1 ? { id } : `${ids.length} nodes are called ${name}: give one of the ids ${ids.join(', ')}`;
}

/** Returns the field of a node that a text such as `KSampler.seed` or `3.seed` names; else the reason why there is none. */
export function findTarget(workflow: Workflow, text: string): Target | string {
  let reason = 'must be a node and its field, such as 3.seed or KSampler.seed';
  for (let dot = text.indexOf('.'); dot !== -1; dot = text.indexOf('.', dot + 1)) {
    const [name, field] = [text.slice(0, dot), text.slice(dot + 1)];
    const node = findNode(workflow, name);
    if (typeof node === 'string') {
      if (reason.startsWith('must') || !node.startsWith('there is no')) reason = node;
      continue;
    }
    const inputs = workflow.get(node.id)?.inputs ?? {};
    if (!Object.hasOwn(inputs, field)) {
      reason = `the node ${name} has no field ${field}. It has: ${settableFields(inputs).join(', ') || 'none that can be set'}`;
    } else if (isLink(inputs[field])) {
      reason = `${field} of the node ${name} comes from another node: name the field there`;
    } else return { node: node.id, field };
  }
  return reason;
}

function settableFields(inputs: JsonObject): string[] {
  return Object.keys(inputs).filter((field) => !isLink(inputs[field]));
}

function isLink(value: Json | undefined): boolean {
  return Array.isArray(value);
}

/** Tells whether the field names a file of the machine, which only an upload may set. */
export function isFileField({ class_type }: WorkflowNode, field: string): boolean {
  return (
    /load.*(?:image|mask|video|audio)|(?:image|mask|video|audio).*load/i.test(class_type) && file_fields.has(field)
  );
}

const file_fields = new Set(['image', 'mask', 'video', 'audio', 'file']);

/** Fields by which samplers draw their noise. */
export const seed_fields: ReadonlySet<string> = new Set(['seed', 'noise_seed']);

/** The workflow with other values in some of its fields. */
export function withValues(workflow: Workflow, values: readonly (Target & { value: Json })[]): JsonObject {
  const nodes = new Map(
    [...workflow].map(([id, { class_type, title, inputs }]): [string, JsonObject] => {
      const meta = title === undefined ? {} : { _meta: { title } };
      const own = values.filter(({ node }) => node === id).map(({ field, value }) => [field, value] as const);
      return [id, { class_type, inputs: { ...inputs, ...Object.fromEntries(own) }, ...meta }];
    }),
  );
  return Object.fromEntries(nodes);
}
