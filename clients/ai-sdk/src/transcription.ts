import type {
  TranscriptionModelV4,
  TranscriptionModelV4CallOptions,
  TranscriptionModelV4Result,
} from '@ai-sdk/provider';
import type { InputDraft } from './fields.ts';
import { placeFiles, type MediaFile } from './media-files.ts';
import { noOutput } from './speech.ts';
import { answerOf, bytesOf, factsOf, outputsOf, type TaskModel, type CallOptions } from './task.ts';
import { readTranscript } from './transcript.ts';

type UrlOptions = Parameters<NonNullable<TranscriptionModelV4['doGenerateFromUrl']>>[0];
type Granularities = TranscriptionModelV4CallOptions['timestampGranularities'];

/** A transcription model of the service: each call is a task. */
export class MedleyTranscriptionModel implements TranscriptionModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.transcription';
  readonly modelId: string;
  readonly #model: TaskModel;

  constructor(model: TaskModel) {
    this.modelId = model.modelId;
    this.#model = model;
  }

  doGenerate({
    audio: data,
    mediaType,
    ...options
  }: TranscriptionModelV4CallOptions): Promise<TranscriptionModelV4Result> {
    return this.#transcribe({ type: 'file', data, mediaType }, options);
  }

  /** The service fetches links by itself, also large ones. */
  doGenerateFromUrl({ audio, ...options }: UrlOptions): Promise<TranscriptionModelV4Result> {
    return this.#transcribe({ type: 'url', url: audio.href }, options);
  }

  async #transcribe(
    file: MediaFile,
    options: CallOptions & { timestampGranularities?: Granularities },
  ): Promise<TranscriptionModelV4Result> {
    const draft = await this.#model.draft(options);
    const placed = placeFiles(draft, 'audio', [file], { kind: 'audio', isMeant: () => true });
    askForTimes(draft, options.timestampGranularities);
    const finished = await this.#model.run(draft, [placed], options);
    const { task, headers } = finished;
    const [output] = outputsOf(task, 'text');
    if (!output) throw noOutput(this.modelId, task.id);
    const text = output.text ?? new TextDecoder().decode(await bytesOf(finished, output, options.abortSignal));
    return {
      ...readTranscript(text),
      warnings: draft.warnings,
      response: { ...answerOf(task, headers), body: text },
      providerMetadata: { medley: factsOf(task) },
    };
  }
}

/** Asks for the form that has times, where the model lists it. */
function askForTimes(draft: InputDraft, granularities: Granularities = []): void {
  const format = draft.field(['output_format', 'response_format', 'format']);
  const detailed = ['verbose_json', 'json'].find((word) => format?.choices?.includes(word) === true);
  if (format && detailed !== undefined) draft.set(format.name, detailed);
  if (granularities.length === 0) return;
  const field = draft.field(['timestamp_granularities']);
  if (field) draft.set(field.name, granularities);
  else if (detailed !== 'verbose_json' || granularities.includes('word')) draft.warn('timestampGranularities');
}
