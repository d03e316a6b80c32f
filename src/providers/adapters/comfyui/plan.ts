import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { findNode, findTarget, readWorkflow, type Target, type Workflow } from './workflow.ts';

/** The options of a route, read. */
export type Plan = {
  workflow: Workflow;
  /** By the field of the input. */
  inputs: ReadonlyMap<string, Setting>;
  /** Nodes whose files are the results; undefined: all that save. */
  outputs: readonly string[] | undefined;
  /** Fields of noise that no caller sets get another number for each run. */
  is_random: boolean;
};

/** Fields of nodes that one field of the input sets: all of them, or by the two numbers of a size such as `1024x768`. */
export type Setting = { targets: readonly Target[] } | { width: Target; height: Target };

const option_names = ['workflow', 'inputs', 'outputs', 'seed'];

/** Reads the options of a route; `plan` is undefined where one of them is wrong. */
export function readPlan(options: JsonObject): { plan: Plan | undefined; problems: OptionProblem[] } {
  const problems: OptionProblem[] = Object.keys(options)
    .filter((field) => !option_names.includes(field))
    .map((field) => ({ field, message: 'is unknown and has no effect', known_names: option_names }));
  if (typeof options['workflow'] === 'string') return { plan: undefined, problems }; // its file was not there, which is said already
  const workflow = readWorkflow(options['workflow']);
  if (typeof workflow === 'string') {
    return { plan: undefined, problems: [...problems, { field: 'workflow', message: workflow }] };
  }
  const mistakes: OptionProblem[] = [];
  const plan: Plan = {
    workflow,
    inputs: readInputs(workflow, options['inputs'], mistakes),
    outputs: readOutputs(workflow, options['outputs'], mistakes),
    is_random: options['seed'] !== 'fixed',
  };
  const { seed = 'random' } = options;
  if (seed !== 'random' && seed !== 'fixed') mistakes.push({ field: 'seed', message: 'must be one of: random, fixed' });
  return { plan: mistakes.length === 0 ? plan : undefined, problems: [...problems, ...mistakes] };
}

function readInputs(workflow: Workflow, value: Json | undefined, mistakes: OptionProblem[]): Map<string, Setting> {
  const inputs = new Map<string, Setting>();
  if (!isObject(value) || Object.keys(value).length === 0) {
    mistakes.push({ field: 'inputs', message: 'is required: which field of a node each field of the input sets' });
    return inputs;
  }
  const setters = new Map<string, string>();
  for (const [field, named] of Object.entries(value)) {
    const note = (message: string) => void mistakes.push({ field, message, at: ['options', 'inputs'] });
    const setting = readSetting(workflow, named, note);
    if (!setting) continue;
    for (const target of targetsOf(setting)) {
      const key = `${target.node}.${target.field}`;
      const other = setters.get(key);
      if (other !== undefined) note(`sets ${key}, which ${other} sets already`);
      setters.set(key, field);
    }
    inputs.set(field, setting);
  }
  return inputs;
}

export function targetsOf(setting: Setting): readonly Target[] {
  return 'targets' in setting ? setting.targets : [setting.width, setting.height];
}

const form = 'must be a field such as KSampler.seed, a list of them, or { width: …, height: … } of a size';

function readSetting(workflow: Workflow, named: Json, note: (message: string) => void): Setting | undefined {
  const one = (text: Json | undefined): Target | undefined => {
    const target = typeof text === 'string' ? findTarget(workflow, text) : form;
    if (typeof target !== 'string') return target;
    note(target);
    return undefined;
  };
  if (isObject(named)) {
    const [width, height] = [one(named['width']), one(named['height'])];
    return width && height ? { width, height } : undefined;
  }
  const texts = [named].flat();
  const targets = texts.map(one).filter((target) => target !== undefined);
  if (texts.length === 0) note(form);
  return targets.length === texts.length && targets.length > 0 ? { targets } : undefined;
}

function readOutputs(workflow: Workflow, value: Json | undefined, mistakes: OptionProblem[]): string[] | undefined {
  if (value === undefined) return undefined;
  const names = [value].flat();
  return names.flatMap((name) => {
    const node = typeof name === 'string' ? findNode(workflow, name) : 'must be a node, or a list of them';
    if (typeof node !== 'string') return [node.id];
    mistakes.push({ field: 'outputs', message: node });
    return [];
  });
}

/** Fields of the input that the route forgets, and names of fields that are not there. */
export function inputProblems(options: JsonObject, input_fields: readonly string[] | undefined): OptionProblem[] {
  const inputs = options['inputs'];
  if (!input_fields || !isObject(inputs)) return [];
  const named = Object.keys(inputs);
  const at = ['options', 'inputs'];
  const forgotten = input_fields.filter((field) => !named.includes(field));
  const unknown = named.filter((field) => !input_fields.includes(field));
  return [
    ...forgotten.map((field) => ({
      field: 'inputs',
      message: `does not say what the field ${field} of the input sets`,
    })),
    ...unknown.map((field) => ({ field, message: 'is no field of the input', known_names: input_fields, at })),
  ];
}
