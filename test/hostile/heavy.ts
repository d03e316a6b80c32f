import fc from 'fast-check';
import { heavySchema, heavySize, heavyText, heavyValue, listed } from './heavy-values.ts';
import { heavyForm } from './heavy-forms.ts';
import { heavyHead } from './heavy-heads.ts';
import { operationsOf, type Operation } from './operations.ts';
import type { HostileRequest, World } from './requests.ts';
import { fitting } from './schema-values.ts';
import { changedAt, placesOf, type Raw, writeJson } from './text.ts';

/** Requests that are small to send and may be much to read, at every endpoint, with and without a key. */
export function heavyRequests(world: World): fc.Arbitrary<HostileRequest> {
  const operations = operationsOf(world);
  const of = (list: readonly Operation[], make: (operation: Operation) => fc.Arbitrary<HostileRequest>) =>
    fc.constantFrom(...list).chain(make);
  const with_body = operations.filter(({ method }) => method !== 'GET' && method !== 'DELETE');
  return fc.oneof(
    { weight: 4, arbitrary: of(with_body, (operation) => heavyBody(operation, world)) },
    { weight: 6, arbitrary: heavyChat(world) },
    { weight: 2, arbitrary: of(operations, heavyHead) },
    {
      weight: 1,
      arbitrary: of(
        operations.filter(({ takes_form }) => takes_form),
        heavyForm,
      ),
    },
  );
}

/** A heavy value somewhere in a body that fits, or as the whole of it. */
function heavyBody(operation: Operation, world: World): fc.Arbitrary<HostileRequest> {
  const members = fc.constantFrom(...body_members);
  return fc
    .record({
      fit:
        operation.schema === undefined
          ? fc.dictionary(members, fc.string(), { maxKeys: 4 })
          : fitting(operation.schema, world.document),
      value: fc.oneof(heavyValue, heavyText, heavySchema),
      size: heavySize,
      position: fc.nat(),
      name: members,
      kind: fc.constantFrom('replace', 'replace', 'add', 'whole'),
    })
    .chain(({ fit, value, size, position, name, kind }) => {
      const raw = value(Math.min(size, operation.body_bytes_max - 500));
      return operation.send(writeJson(withHeavy(fit, raw, { kind, position, name })));
    });
}

/** Members of the bodies of endpoints that the reference leaves out. */
const body_members =
  `email password name token code url reason amount model input prompt messages limit_month expires_at scopes
 addresses role newPassword currentPassword callbackURL currency threshold country tax_id company address`.split(/\s+/);

function withHeavy(
  fit: unknown,
  raw: Raw,
  { kind, position, name }: { kind: string; position: number; name: string },
): unknown {
  if (kind === 'whole') return raw;
  if (kind === 'add') return typeof fit === 'object' && fit !== null ? { ...fit, [name]: raw } : raw;
  const places = placesOf(fit).filter((place) => place.length > 0);
  return changedAt(fit, places[position % places.length] ?? [], () => raw);
}

/** Conversations that have much of one thing: turns, parts, calls of tools, tools, schemas, files. */
function heavyChat(world: World): fc.Arbitrary<HostileRequest> {
  const operations = operationsOf(world).filter(({ path }) => path in conversations || path.includes('/chat/'));
  return fc
    .record({
      operation: fc.constantFrom(...operations.filter(({ method }) => method === 'POST')),
      model: fc.constantFrom(...world.chat_models),
      size: heavySize,
      text: heavyText,
      value: heavyValue,
      schema: heavySchema,
      stream: fc.boolean(),
      shape: fc.nat(),
    })
    .chain(({ operation, model, size, text, value, schema, stream, shape }) => {
      const shapes =
        conversations[operation.path] ?? (operation.path.includes('messages') ? messages_shapes : completions_shapes);
      const write = shapes[shape % shapes.length] ?? shapes[0];
      const bounded = Math.min(size, operation.body_bytes_max - 500);
      const body = write?.({
        size: bounded,
        text: text(bounded).text,
        value: value(bounded).text,
        schema: schema(bounded).text,
      });
      return operation.send(`{"model":"${model}","stream":${stream},${body}}`);
    });
}

type Parts = { size: number; text: string; value: string; schema: string };

type Shape = (parts: Parts) => string;

const hello = '"messages":[{"role":"user","content":"Hello [[tokens 5]]"}]';
const bounded_output = '"max_tokens":50';

const completions_shapes: readonly Shape[] = [
  ({ text }) => `"messages":[{"role":"user","content":${text}}]`,
  ({ text }) => `"messages":[{"role":"system","content":${text}},{"role":"user","content":"a"}]`,
  ({ text }) => `"messages":[{"role":"user","content":[{"type":"text","text":${text}}]}]`,
  ({ value }) => `"messages":[{"role":"user","content":${value}}]`,
  ({ value }) => `"messages":${value}`,
  ({ text }) => `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":${text}}}]}]`,
  ({ text }) =>
    `"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":${text},"format":"wav"}}]}]`,
  ({ text }) =>
    `"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":${text},"filename":"a.pdf"}}]}]`,
  ({ size }) =>
    `"messages":[${listed(size, (index) => `{"role":"${index % 2 === 0 ? 'user' : 'assistant'}","content":"a"}`)}]`,
  ({ size }) => `"messages":[${listed(size, () => '{"role":"system","content":"a"}')},{"role":"user","content":"a"}]`,
  ({ size }) => `"messages":[${listed(size, () => '{"role":"user","content":"a"}')}]`,
  ({ size }) => `"messages":[{"role":"user","content":[${listed(size, () => '{"type":"text","text":"a"}')}]}]`,
  ({ size }) =>
    `"messages":[{"role":"user","content":[${listed(size, () => '{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}')}]}]`,
  ({ size }) => toolTurns(size, '{}'),
  ({ size }) => toolTurns(size / 20, '{\\"a\\":1}'.repeat(3)),
  ({ text }) =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${text}}}]},{"role":"tool","tool_call_id":"c","content":${text}}]`,
  ({ size }) =>
    `${hello},"tools":[${listed(size, (index) => functionTool(index, '{"type":"object","properties":{}}'))}]`,
  ({ schema }) => `${hello},"tools":[${functionTool(0, schema)}],"tool_choice":"required"`,
  ({ schema }) =>
    `${hello},"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":${schema}}}`,
  ({ value }) => `${hello},"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${value}}}`,
  ({ value }) => `${hello},"stop":${value}`,
  ({ value }) => `${hello},"metadata":${value}`,
  ({ value }) => `${hello},"logit_bias":${value}`,
  ({ text }) => `${hello},"user":${text},"prompt_cache_key":${text}`,
  ({ text }) =>
    `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":${text}},{"role":"user","content":"b"}],${bounded_output}`,
];

function toolTurns(size: number, args: string): string {
  const calls = listed(
    size / 2,
    (index) => `{"id":"c${index}","type":"function","function":{"name":"f${index % 100}","arguments":"${args}"}}`,
  );
  const count = calls.split('"id"').length - 1;
  const results = Array.from(
    { length: count },
    (_, index) => `{"role":"tool","tool_call_id":"c${count - 1 - index}","content":"r"}`,
  );
  return `"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[${calls}]},${results.join(',')}]`;
}

function functionTool(index: number, schema: string): string {
  return `{"type":"function","function":{"name":"f${index}","description":"d","parameters":${schema}}}`;
}

const messages_hello = `"max_tokens":50,${hello}`;

const messages_shapes: readonly Shape[] = [
  ...completions_shapes.slice(0, 5).map(
    (shape): Shape =>
      (parts) =>
        `"max_tokens":50,${shape(parts)}`,
  ),
  ({ text }) => `${messages_hello},"system":${text}`,
  ({ value }) => `${messages_hello},"system":${value}`,
  ({ size }) =>
    `${messages_hello},"system":[${listed(size, () => '{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}')}]`,
  ({ size }) =>
    `"max_tokens":50,"messages":[${listed(size, () => '{"role":"user","content":[{"type":"text","text":"a"}]}')}]`,
  ({ size }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[${listed(size / 2, (index) => `{"type":"tool_use","id":"toolu_${index}","name":"f","input":{}}`)}]},{"role":"user","content":[${listed(size / 2, (index) => `{"type":"tool_result","tool_use_id":"toolu_${index}","content":"r"}`)}]}]`,
  ({ value }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":${value}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":${value}}]}]`,
  ({ text }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":${text}}}]}]`,
  ({ text }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":${text}},"citations":{"enabled":true}}]}]`,
  ({ size }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[${listed(size, () => '{"type":"text","text":"a"}')}]}}]}]`,
  ({ text }) =>
    `"max_tokens":50,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":${text},"signature":${text}},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]`,
  ({ size }) =>
    `${messages_hello},"tools":[${listed(size, (index) => `{"name":"f${index}","input_schema":{"type":"object"}}`)}]`,
  ({ schema }) =>
    `${messages_hello},"tools":[{"name":"f","description":"d","input_schema":${schema}}],"tool_choice":{"type":"any"}`,
  ({ schema }) => `${messages_hello},"output_config":{"format":{"type":"json_schema","schema":${schema}}}`,
  ({ value }) => `${messages_hello},"stop_sequences":${value}`,
  ({ text }) => `${messages_hello},"metadata":{"user_id":${text}}`,
  ({ value }) => `${messages_hello},"mcp_servers":${value}`,
];

const responses_shapes: readonly Shape[] = [
  ({ text }) => `"input":${text}`,
  ({ value }) => `"input":${value}`,
  ({ text }) => `"input":"a","instructions":${text}`,
  ({ size }) =>
    `"input":[${listed(size, (index) => `{"role":"${index % 2 === 0 ? 'user' : 'assistant'}","content":"a"}`)}]`,
  ({ size }) => `"input":[{"role":"user","content":[${listed(size, () => '{"type":"input_text","text":"a"}')}]}]`,
  ({ size }) =>
    `"input":[{"role":"user","content":"a"},${listed(size / 2, (index) => `{"type":"function_call","call_id":"c${index}","name":"f","arguments":"{}"}`)},${listed(size / 2, (index) => `{"type":"function_call_output","call_id":"c${index}","output":"r"}`)}]`,
  ({ text }) => `"input":[{"role":"user","content":[{"type":"input_image","image_url":${text}}]}]`,
  ({ text }) => `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":${text}}]}]`,
  ({ text }) =>
    `"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":${text}}]`,
  ({ size }) =>
    `"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[${listed(size, () => '{"type":"summary_text","text":"s"}')}]}]`,
  ({ size }) =>
    `"input":"a","tools":[${listed(size, (index) => `{"type":"function","name":"f${index}","parameters":{"type":"object"}}`)}]`,
  ({ schema }) =>
    `"input":"a","tools":[{"type":"function","name":"f","strict":true,"parameters":${schema}}],"tool_choice":"required"`,
  ({ schema }) => `"input":"a","text":{"format":{"type":"json_schema","name":"n","schema":${schema}}}`,
  ({ value }) => `"input":"a","metadata":${value}`,
  ({ value }) => `"input":"a","include":${value}`,
  ({ text }) => `"input":"a","previous_response_id":${text},"user":${text}`,
];

const embeddings_shapes: readonly Shape[] = [
  ({ text }) => `"input":${text}`,
  ({ value }) => `"input":${value}`,
  ({ size }) => `"input":[${listed(size, () => '"a"')}]`,
  ({ size }) => `"input":[${listed(size, (index) => String(index % 50_000))}]`,
  ({ size }) => `"input":[${listed(size, (index) => `[${index},1,2]`)}]`,
  ({ size }) => `"input":[${listed(size, () => '"a"', 2_000)}],"dimensions":3000`,
  ({ size }) => `"input":[${listed(size, () => '"a"', 2_000)}],"encoding_format":"base64"`,
];

const rerank_shapes: readonly Shape[] = [
  ({ text }) => `"query":${text},"documents":["a"]`,
  ({ text }) => `"query":"a","documents":[${text},"b"]`,
  ({ value }) => `"query":"a","documents":${value}`,
  ({ size }) => `"query":"a b c","documents":[${listed(size, () => '"a"', 9_000)}]`,
  ({ size }) =>
    `"query":"a b c","documents":[${listed(size, (index) => `{"text":"a","id":${index}}`, 900)}],"return_documents":true`,
];

const moderations_shapes: readonly Shape[] = [
  ({ text }) => `"input":${text}`,
  ({ value }) => `"input":${value}`,
  ({ size }) => `"input":[${listed(size, () => '"a"', 2_000)}]`,
  ({ size }) => `"input":[${listed(size, () => '{"type":"text","text":"a"}', 2_000)}]`,
  ({ text }) => `"input":[{"type":"image_url","image_url":{"url":${text}}}]`,
];

const conversations: Record<string, readonly Shape[]> = {
  '/v1/chat/completions': completions_shapes,
  '/v1/messages': messages_shapes,
  '/v1/messages/count_tokens': messages_shapes,
  '/v1/responses': responses_shapes,
  '/v1/responses/input_tokens': responses_shapes,
  '/v1/embeddings': embeddings_shapes,
  '/v1/rerank': rerank_shapes,
  '/v1/moderations': moderations_shapes,
};
