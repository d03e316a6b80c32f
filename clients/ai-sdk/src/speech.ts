import type { SpeechModelV4, SpeechModelV4CallOptions, SpeechModelV4Result } from '@ai-sdk/provider';
import { MedleyError } from '@medley/client';
import { callError } from './errors.ts';
import { answerOf, bytesOf, factsOf, outputsOf, type TaskModel } from './task.ts';

/** Other names of formats. */
const formats: Readonly<Record<string, readonly string[]>> = { mp3: ['mpeg'], wav: ['wave'], ogg: ['opus'] };

/** A speech model of the service: each call is a task. */
export class MedleySpeechModel implements SpeechModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.speech';
  readonly modelId: string;
  readonly #model: TaskModel;

  constructor(model: TaskModel) {
    this.modelId = model.modelId;
    this.#model = model;
  }

  async doGenerate(options: SpeechModelV4CallOptions): Promise<SpeechModelV4Result> {
    const draft = await this.#model.draft(options);
    const { text, voice, outputFormat, instructions, speed, language, abortSignal } = options;
    draft.put('text', text, ['text', 'input', 'prompt', 'script']);
    draft.put('voice', voice, ['voice', 'voice_id', 'speaker']);
    const synonyms = formats[outputFormat ?? ''] ?? [];
    draft.put('outputFormat', outputFormat, ['output_format', 'response_format', 'audio_format', 'format'], {
      synonyms,
    });
    draft.put('instructions', instructions, ['instructions', 'style_instructions']);
    draft.put('speed', speed, ['speed', 'speaking_rate'], { harmless: [1] });
    draft.put('language', language, ['language', 'language_code'], { harmless: ['auto'] });
    const finished = await this.#model.run(draft, [], options);
    const { task, headers, input } = finished;
    const [output] = outputsOf(task, 'audio');
    if (!output) throw noOutput(this.modelId, task.id);
    const audio = await bytesOf(finished, output, abortSignal);
    return {
      audio,
      warnings: draft.warnings,
      request: { body: { model: this.modelId, input } },
      response: answerOf(task, headers),
      providerMetadata: { medley: factsOf(task) },
    };
  }
}

/** The error for a task of another kind of model. It is paid, so it is not asked for again. */
export function noOutput(model: string, task_id: string): unknown {
  const error = new MedleyError(`${model} made nothing of this kind. The task is ${task_id}.`);
  error.task_id = task_id;
  return callError(error, { url: '/v1/generate', values: { model } }, false);
}
