import { openai } from '@ai-sdk/openai';
import type {
  EmbeddingModelV4,
  Experimental_VideoModelV4 as VideoModelV4,
  ImageModelV4,
  LanguageModelV4,
  ProviderV4,
  RerankingModelV4,
  SpeechModelV4,
  TranscriptionModelV4,
} from '@ai-sdk/provider';
import { MedleyChatModel } from './chat.ts';
import { MedleyEmbeddingModel } from './embedding.ts';
import { MedleyImageModel } from './image.ts';
import { MedleyRerankingModel } from './reranking.ts';
import { connect, type Connection, type MedleyProviderSettings } from './settings.ts';
import { MedleySpeechModel } from './speech.ts';
import { TaskModels } from './task.ts';
import { MedleyTranscriptionModel } from './transcription.ts';
import { MedleyVideoModel } from './video.ts';

export interface MedleyProvider extends ProviderV4 {
  (modelId: string): LanguageModelV4;
  chat(modelId: string): LanguageModelV4;
  embedding(modelId: string): EmbeddingModelV4;
  image(modelId: string): ImageModelV4;
  video(modelId: string): VideoModelV4;
  videoModel(modelId: string): VideoModelV4;
  speech(modelId: string): SpeechModelV4;
  speechModel(modelId: string): SpeechModelV4;
  transcription(modelId: string): TranscriptionModelV4;
  transcriptionModel(modelId: string): TranscriptionModelV4;
  reranking(modelId: string): RerankingModelV4;
  rerankingModel(modelId: string): RerankingModelV4;
  /** Tools that the service or the provider of a model runs, where the operator offers them. */
  tools: Pick<typeof openai.tools, 'webSearch' | 'imageGeneration' | 'codeInterpreter'>;
}

/** Makes a provider. Address and key are read when the first call is made: without them it throws LoadSettingError or LoadAPIKeyError. */
export function createMedley(settings: MedleyProviderSettings = {}): MedleyProvider {
  let connection: Connection | undefined;
  const connected = () => (connection ??= connect(settings));
  const tasks = new TaskModels(connected);
  const chat = (modelId: string) => new MedleyChatModel(modelId, connected);
  const embedding = (modelId: string) => new MedleyEmbeddingModel(modelId, connected);
  const image = (modelId: string) => new MedleyImageModel(tasks.get(modelId));
  const video = (modelId: string) => new MedleyVideoModel(tasks.get(modelId));
  const speech = (modelId: string) => new MedleySpeechModel(tasks.get(modelId));
  const transcription = (modelId: string) => new MedleyTranscriptionModel(tasks.get(modelId));
  const reranking = (modelId: string) => new MedleyRerankingModel(modelId, connected);
  const { webSearch, imageGeneration, codeInterpreter } = openai.tools;
  return Object.assign((modelId: string) => chat(modelId), {
    specificationVersion: 'v4' as const,
    languageModel: chat,
    chat,
    embeddingModel: embedding,
    embedding,
    imageModel: image,
    image,
    videoModel: video,
    video,
    speechModel: speech,
    speech,
    transcriptionModel: transcription,
    transcription,
    rerankingModel: reranking,
    reranking,
    tools: { webSearch, imageGeneration, codeInterpreter },
  });
}

/** The service of MEDLEY_URL, with the key in MEDLEY_API_KEY. */
export const medley: MedleyProvider = createMedley();
