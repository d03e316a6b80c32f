import { anthropic } from './adapters/anthropic/adapter.ts';
import { anthropic_bedrock } from './adapters/anthropic/bedrock.ts';
import { anthropic_vertex } from './adapters/anthropic/vertex.ts';
import { automatic1111 } from './adapters/automatic1111/adapter.ts';
import { bedrock } from './adapters/bedrock/adapter.ts';
import { bfl } from './adapters/bfl/adapter.ts';
import { comfyui } from './adapters/comfyui/adapter.ts';
import { cohere } from './adapters/cohere/adapter.ts';
import { elevenlabs } from './adapters/elevenlabs/adapter.ts';
import { fal } from './adapters/fal/adapter.ts';
import { gemini } from './adapters/gemini/adapter.ts';
import { gemini_interactions } from './adapters/gemini-interactions/adapter.ts';
import { http_queue } from './adapters/http-queue/adapter.ts';
import { jina } from './adapters/jina/adapter.ts';
import { kling } from './adapters/kling/adapter.ts';
import { luma } from './adapters/luma/adapter.ts';
import { minimax } from './adapters/minimax/adapter.ts';
import { openai } from './adapters/openai/adapter.ts';
import type { Adapter } from './provider.ts';
import { replicate } from './adapters/replicate/adapter.ts';
import { runway } from './adapters/runway/adapter.ts';
import { sandbox } from './sandbox/adapter.ts';
import { voyage } from './adapters/voyage/adapter.ts';

/** Every adapter of the service by the name that `medley.yaml` gives it. */
export const adapters: Record<string, Adapter> = {
  sandbox,
  openai,
  anthropic,
  'anthropic-bedrock': anthropic_bedrock,
  'anthropic-vertex': anthropic_vertex,
  bedrock,
  gemini,
  'gemini-interactions': gemini_interactions,
  replicate,
  fal,
  bfl,
  runway,
  luma,
  kling,
  minimax,
  elevenlabs,
  cohere,
  voyage,
  jina,
  comfyui,
  automatic1111,
  'http-queue': http_queue,
};
