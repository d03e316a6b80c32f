import type { Imitation, Reply } from './imitation.ts';
import { startImitation } from './imitation.ts';

/**
 * OpenRouter by its documentation (openrouter.ai/docs, "Models", "Authentication", "API Reference", read on 2026-11-27): a
 * list that everybody may read, with prices per token as texts, and a key that `/key` describes.
 */

export const openrouter_key = 'sk-or-v1-0123456789abcdef';

const talker = {
  id: 'maker/talker',
  name: 'Maker: Talker',
  created: 1_780_000_000,
  description: 'Talks about everything.',
  context_length: 128_000,
  architecture: { input_modalities: ['text'], output_modalities: ['text'] },
  pricing: { prompt: '0.0000025', completion: '0.00001', request: '0', input_cache_read: '0.00000025' },
  top_provider: { context_length: 128_000, max_completion_tokens: 16_384, is_moderated: false },
  supported_parameters: ['max_tokens', 'tools', 'tool_choice'],
};

const thinker = {
  ...talker,
  id: 'maker/thinker',
  name: 'Maker: Thinker',
  description: 'Thinks first.',
  pricing: { prompt: '0.00001', completion: '0.00005' },
  supported_parameters: ['max_tokens', 'reasoning'],
};

const painter = {
  ...talker,
  id: 'maker/painter',
  name: 'Maker: Painter',
  architecture: { input_modalities: ['text'], output_modalities: ['image'] },
};

const openrouter_list = { data: [talker, thinker, painter] };

const usage = { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15, cost: 0.00006 };

/** Starts an OpenRouter that takes `openrouter_key`; its `base_url` ends with /api/v1. */
export function startOpenRouter(): Promise<Imitation> {
  return startImitation({
    roleOf: ({ path }) =>
      path.endsWith('/chat/completions') ? 'submit' : path.startsWith('/api/v1/') ? 'poll' : 'other',
    answer: ({ path, headers, json }): Reply => {
      const is_known = headers.authorization === `Bearer ${openrouter_key}`;
      if (path === '/api/v1/models') return { json: openrouter_list };
      if (!is_known) return { status: 401, json: { error: { message: 'User not found.', code: 401 } } };
      if (path === '/api/v1/key') return { json: { data: { label: 'sk-or-v1-012...def', usage: 0, limit: null } } };
      if (path !== '/api/v1/chat/completions') return { status: 404, text: '<html>Not found</html>' };
      return json['stream'] === true ? streamOf(String(json['model'])) : wholeOf(String(json['model']));
    },
  });
}

const head = (object: string, model: string) => ({
  id: 'gen-1780000000-abc',
  provider: 'Maker',
  model,
  object,
  created: 1_780_000_000,
});

function wholeOf(model: string): Reply {
  const message = { role: 'assistant', content: 'Hello from the router.', refusal: null, reasoning: null };
  const choices = [{ index: 0, logprobs: null, finish_reason: 'stop', native_finish_reason: 'stop', message }];
  return { json: { ...head('chat.completion', model), choices, usage } };
}

function streamOf(model: string): Reply {
  const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) =>
    `data: ${JSON.stringify({
      ...head('chat.completion.chunk', model),
      choices: [
        {
          index: 0,
          delta: { role: 'assistant', ...delta },
          finish_reason,
          native_finish_reason: finish_reason,
          logprobs: null,
        },
      ],
      ...more,
    })}\n\n`;
  const text = [
    ': OPENROUTER PROCESSING\n\n',
    chunk({ content: 'Hello ' }),
    chunk({ content: 'from the router.' }),
    chunk({ content: '' }, 'stop'),
    chunk({ content: '' }, null, { usage }),
    'data: [DONE]\n\n',
  ].join('');
  return { text, headers: { 'content-type': 'text/event-stream' } };
}
