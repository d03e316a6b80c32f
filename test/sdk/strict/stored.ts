import type { Stage } from '../../chat/setup.ts';
import { message } from '../../chat/setup.ts';
import { eventsIn, sampleOf } from './asking.ts';
import { upstreams } from './chat.ts';
import type { Sample } from './vendor-types.ts';

/** Responses that are stored and made in the background, conversations, counts and lists of models. */

/** The SDK calls `supportedGenerationMethods` what the wire calls so. */
const google_model = 'Omit<Google.Model, "supportedActions"> & { supportedGenerationMethods: string[] }';

/** Its output begins with messages of the user, as OpenAI's reference shows; the type has those of a model alone. */
const compaction = `Omit<OpenAI.Responses.CompactedResponse, 'output'> & {
  output: (OpenAI.Responses.ResponseOutputItem | OpenAI.Conversations.Message)[];
}`.replaceAll(/\s+/g, ' ');

const response = 'OpenAI.Responses.Response';
const model = 'sandbox/chat';
const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];

export async function responseSamples(stage: Stage): Promise<Sample[]> {
  const { client } = stage;
  const created = await client.call('POST', '/v1/responses', { model, input: 'Look [[tool look {}]]', tools });
  const at = `/v1/responses/${created.json.id}`;
  const background = await client.call('POST', '/v1/responses', { model, input: 'Hi', background: true });
  const streamed = await client.call('POST', '/v1/responses', { model, input: 'Hi', background: true, stream: true });
  const ended = await client.call('GET', `/v1/responses/${idIn(eventsIn(streamed)[0])}`);
  stage.upstream.script(upstreams.messages[1], { json: message('A summary.') });
  const compacted = await client.call('POST', '/v1/responses/compact', { model: upstreams.messages[0], input: 'Hi' });
  const counted = await client.call('POST', '/v1/responses/input_tokens', { model, input: 'Hi' });
  return [
    sampleOf('responses: created', response, created),
    sampleOf('responses: read', response, await client.call('GET', at)),
    sampleOf(
      'responses: input items',
      'OpenAI.Responses.ResponseItemList',
      await client.call('GET', `${at}/input_items`),
    ),
    sampleOf('responses: queued', response, background),
    sampleOf('responses: read after its end', response, ended),
    ...eventsIn(streamed).map((value) => ({
      what: 'responses in the background, streamed',
      type: 'OpenAI.Responses.ResponseStreamEvent',
      value,
    })),
    sampleOf('responses: compacted', compaction, compacted),
    sampleOf('responses: counted', 'OpenAI.Responses.InputTokenCountResponse', counted),
  ];
}

function idIn(event: unknown): string {
  return /resp_\w+/.exec(JSON.stringify(event))?.[0] ?? '';
}

export async function conversationSamples({ client }: Stage): Promise<Sample[]> {
  const created = await client.call('POST', '/v1/conversations', { items: [{ role: 'user', content: 'one' }] });
  const at = `/v1/conversations/${created.json.id}`;
  await client.call('POST', '/v1/responses', {
    model,
    input: 'Look [[tool look {}]]',
    tools,
    conversation: created.json.id,
  });
  const items = await client.call('GET', `${at}/items`);
  const item = await client.call('GET', `${at}/items/${items.json.data[0]?.id}`);
  const added = await client.call('POST', `${at}/items`, {
    items: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'two' }] }],
  });
  const changed = await client.call('POST', at, { metadata: { a: 'b' } });
  const type = 'OpenAI.Conversations.Conversation';
  return [
    sampleOf('conversations', type, created),
    sampleOf('conversations: changed', type, changed),
    sampleOf('conversations: items', 'OpenAI.Conversations.ConversationItemList', items),
    sampleOf('conversations: items added', 'OpenAI.Conversations.ConversationItemList', added),
    sampleOf('conversations: item', 'OpenAI.Conversations.ConversationItem', item),
    sampleOf(
      'conversations: deleted',
      'OpenAI.Conversations.ConversationDeletedResource',
      await client.call('DELETE', at),
    ),
  ];
}

export async function listSamples({ client }: Stage): Promise<Sample[]> {
  const counted = { model, messages: [{ role: 'user', content: 'Hi' }] };
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  const gemini = (method: string, body: object) => client.call('POST', `/v1beta/models/${method}`, body);
  const models = await client.call('GET', '/v1/models?limit=3');
  const one = await client.call('GET', '/v1/models/sandbox/chat');
  return [
    sampleOf('models', 'import("openai-7/core/pagination").PageResponse<OpenAI.Models.Model>', models),
    sampleOf('a model', 'OpenAI.Models.Model', one),
    sampleOf('models', 'import("anthropic-1/core/pagination").PageResponse<Anthropic.ModelInfo>', models),
    sampleOf('a model', 'Anthropic.ModelInfo', one),
    sampleOf('counts', 'Anthropic.MessageTokensCount', await client.call('POST', '/v1/messages/count_tokens', counted)),
    sampleOf('counts', 'Google.CountTokensResponse', await gemini('sandbox/chat:countTokens', { contents })),
    sampleOf(
      'models',
      `{ models: (${google_model})[]; nextPageToken?: string }`,
      await client.call('GET', '/v1beta/models?pageSize=2'),
    ),
    sampleOf('a model', google_model, await client.call('GET', '/v1beta/models/sandbox/chat')),
    sampleOf(
      'vectors',
      '{ embedding: Google.ContentEmbedding }',
      await gemini('sandbox/embedding:embedContent', { content: contents[0] }),
    ),
    sampleOf(
      'vectors, several',
      'Google.EmbedContentResponse',
      await gemini('sandbox/embedding:batchEmbedContents', {
        requests: [{ model: 'models/sandbox/embedding', content: contents[0] }],
      }),
    ),
  ];
}
