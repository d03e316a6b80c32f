import type { JsonObject } from '../../../../src/catalog/model.ts';
import { checkPrompt, classOf, inputsOf, type Refusal } from './nodes.ts';

/**
 * The queue, the history and the files of an imitated ComfyUI, as PromptQueue, PromptExecutor and server.py
 * (github.com/Comfy-Org/ComfyUI, read 2026-11-27) have them. All of it but the files is in memory: a restart loses it.
 */

export type Run = { number: number; id: string; prompt: JsonObject; extra: JsonObject; outputs: string[] };

/** The exception of a node, as `execution_error` says it. */
export type Fault = { node: string; exception_type: string; exception_message: string };

export class Machine {
  pending: Run[] = [];
  running: Run | undefined;
  history = new Map<string, JsonObject>();
  /** By folder and path: `input/medley/a.png`. */
  files = new Map<string, Buffer>();
  /** Runs that have been accepted, those before a restart too. */
  accepted: Run[] = [];
  /** A run stays where it is: in the queue, or at work. */
  holds: 'queued' | 'working' | undefined;
  /** The next run ends with this. */
  fault: Fault | undefined;
  is_disk_full = false;
  /** Every result is gone before anybody can fetch it. */
  loses_files = false;
  /** Before September 2025: the id of a submit is the server's, and an interrupt stops whatever runs. */
  is_old = false;
  #seen = false;
  #numbers = 0;
  readonly #result: (class_type: string) => { bytes: Buffer; ending: string };

  constructor(result: (class_type: string) => { bytes: Buffer; ending: string }) {
    this.#result = result;
  }

  submit(json: JsonObject): { run: Run } | Refusal {
    const { prompt, prompt_id, client_id } = json;
    if (typeof prompt !== 'object' || prompt === null || Array.isArray(prompt)) {
      const error = { type: 'no_prompt', message: 'No prompt provided', details: 'No prompt provided', extra_info: {} };
      return { error, node_errors: {} };
    }
    const is_id = typeof prompt_id === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(prompt_id);
    if (prompt_id !== undefined && !is_id && !this.is_old) {
      const error = {
        type: 'invalid_prompt_id',
        message: 'prompt_id must be a valid UUID',
        details: '',
        extra_info: {},
      };
      return { error, node_errors: {} };
    }
    const checked = checkPrompt(prompt, (name) => this.files.has(`input/${name}`));
    if ('refusal' in checked) return checked.refusal;
    const number = this.#numbers++;
    const id = is_id && !this.is_old ? prompt_id : `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
    const run = { number, id, prompt, extra: client_id === undefined ? {} : { client_id }, outputs: checked.outputs };
    this.pending.push(run);
    this.accepted.push(run);
    return { run };
  }

  /** The queue as it is; after that the machine goes a step on. */
  look(): JsonObject {
    const entry = ({ number, id, prompt, extra, outputs }: Run) => [number, id, prompt, extra, outputs];
    const seen = { queue_running: this.running ? [entry(this.running)] : [], queue_pending: this.pending.map(entry) };
    this.#step();
    return seen;
  }

  #step(): void {
    if (this.running) {
      if (this.#seen && this.holds !== 'working') this.#finish(this.running);
      else this.#seen = true;
    } else if (this.holds !== 'queued') {
      this.running = this.pending.shift();
      this.#seen = false;
    }
  }

  #finish(run: Run): void {
    const { fault } = this;
    this.fault = undefined;
    const full = this.is_disk_full
      ? {
          node: run.outputs[0] ?? '',
          exception_type: 'OSError',
          exception_message: '[Errno 28] No space left on device',
        }
      : undefined;
    const problem = fault ?? full;
    if (problem)
      return this.#end(run, {}, [
        'execution_error',
        {
          ...data(run, problem.node),
          exception_type: problem.exception_type,
          exception_message: problem.exception_message,
          traceback: ['…'],
          current_inputs: {},
        },
      ]);
    const outputs = Object.fromEntries(run.outputs.map((node): [string, JsonObject] => [node, this.#save(run, node)]));
    this.#end(run, outputs, ['execution_success', { prompt_id: run.id }]);
  }

  #save(run: Run, node: string): JsonObject {
    const class_type = classOf(run.prompt, node);
    const { bytes, ending } = this.#result(class_type);
    const type = class_type === 'PreviewImage' ? 'temp' : 'output';
    const prefix = String(inputsOf(run.prompt, node)['filename_prefix'] ?? 'ComfyUI');
    const [name = '', ...folders] = prefix.split('/').toReversed();
    const subfolder = folders.toReversed().join('/');
    const filename = `${name}_${String(run.number + 1).padStart(5, '0')}_.${ending}`;
    if (!this.loses_files) this.files.set([type, subfolder, filename].filter((part) => part !== '').join('/'), bytes);
    const file = { filename, subfolder, type };
    if (class_type === 'VHS_VideoCombine') return { gifs: [{ ...file, format: 'video/h264-mp4' }] };
    return class_type === 'SaveAudio' ? { audio: [file] } : { images: [file] };
  }

  #end(run: Run, outputs: JsonObject, last: [string, JsonObject]): void {
    this.running = undefined;
    const completed = last[0] === 'execution_success';
    const messages = [
      ['execution_start', { prompt_id: run.id }],
      ['execution_cached', { nodes: [], prompt_id: run.id }],
      last,
    ];
    const status = { status_str: completed ? 'success' : 'error', completed, messages };
    this.history.set(run.id, {
      prompt: [run.number, run.id, run.prompt, run.extra, run.outputs],
      outputs,
      status,
      meta: {},
    });
  }

  dequeue(ids: readonly unknown[]): void {
    this.pending = this.pending.filter(({ id }) => !ids.includes(id));
  }

  /** Stops the run that is at work, if it is this one. */
  interrupt(id: unknown): void {
    const { running } = this;
    if (!running || (!this.is_old && id !== undefined && id !== running.id)) return;
    this.#end(running, {}, ['execution_interrupted', data(running, running.outputs[0] ?? '')]);
  }

  restart(): void {
    this.pending = [];
    this.running = undefined;
    this.history = new Map();
  }
}

function data(run: Run, node: string): JsonObject {
  return { prompt_id: run.id, node_id: node, node_type: classOf(run.prompt, node), executed: [] };
}
