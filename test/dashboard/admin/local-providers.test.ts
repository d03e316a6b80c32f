import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from '../../../src/dashboard/views/activity.ts';
import type { AuditView } from '../../../src/dashboard/views/settings.ts';
import type { AdminProviders, DocumentView, ProviderOffer } from '../../../src/dashboard/views/admin-providers.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../../helpers/app.ts';
import { startWebUi, type WebUi } from '../../providers/imitations/automatic1111.ts';
import { startComfyUi, type ComfyUi } from '../../providers/imitations/comfyui/server.ts';
import { textToImage, textToVideo } from '../../providers/imitations/comfyui/workflows.ts';
import { ownerOfNew, okBody, type Someone } from '../people.ts';

/** Machines of the operator's own, added in the dashboard: ComfyUI by workflows, the web UI by its checkpoints. */

let test: TestApp;
let operator: Someone;
let client: Client;
let comfy: ComfyUi;
let web_ui: WebUi;

beforeAll(async () => {
  [comfy, web_ui] = await Promise.all([startComfyUi(), startWebUi()]);
  test = await startTestApp();
  operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  client = await test.client({ credit: '5' });
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
  await Promise.all([comfy.stop(), web_ui.stop()]);
});

const post = (path: string, body: object = {}) => operator.post(`/dash/admin/providers${path}`, body);
const offerOf = async (name: string) =>
  okBody<ProviderOffer>(await operator.get(`/dash/admin/providers/${name}/offer`));
const problem = (param: string, message: RegExp) => ({
  status: 400,
  json: { error: { param, message: expect.stringMatching(message) } },
});
const generate = (model: string, input: object) => client.call('POST', '/v1/generate?wait=30', { model, input });

describe('a ComfyUI', () => {
  const free = [{ unit: 'image', amount: '0', per: 1 }];
  const fields = [
    { target: '6.text', name: 'prompt' },
    { target: '3.steps', name: 'steps', maximum: 40 },
  ];
  const portrait = () => ({
    document: textToImage(),
    id: 'portrait',
    name: 'Portraits',
    kind: 'image',
    fields,
    price: free,
  });

  it('is tried before it is stored, and stands among the choices with its usual address', async () => {
    const { choices, protocols } = okBody<AdminProviders>(await operator.get('/dash/admin/providers'));
    expect(choices.find(({ name }) => name === 'comfyui')).toEqual({
      name: 'comfyui',
      title: 'ComfyUI',
      group: 'local',
      base_url: 'http://127.0.0.1:8188',
      allow_private: true,
      needs_key: false,
    });
    expect(protocols).toContainEqual({ name: 'comfyui', title: 'ComfyUI' });
    const place = { preset: 'comfyui', base_url: web_ui.url, allow_private: true };
    expect(await post('', place)).toMatchObject(problem('base_url', /There is nothing at .*\/queue \(404\)/));
    comfy.instead('poll', { json: { hello: 'world' } });
    expect(await post('', { ...place, base_url: comfy.url })).toMatchObject(
      problem('base_url', /is no queue of ComfyUI/),
    );
    comfy.instead('poll', { status: 401, text: '' });
    expect(await post('', { ...place, base_url: comfy.url })).toMatchObject(
      problem('api_key', /The provider wants a key/),
    );
    expect(okBody(await post('', { ...place, base_url: comfy.url }))).toMatchObject({ name: 'comfyui' });
    expect(await offerOf('comfyui')).toEqual({ models: [], problem: null, may_type: false, document: 'workflow' });
  });

  it('says which fields of a workflow callers may set, as JSON or as the text of a file', async () => {
    const view = okBody<DocumentView>(await post('/comfyui/document', { document: JSON.stringify(textToVideo()) }));
    expect(view.kind).toBe('video');
    expect(view.fields.find(({ target }) => target === '6.text')).toEqual({
      target: '6.text',
      part: 'Positive',
      field: 'text',
      type: 'text',
      value: 'beautiful scenery',
      name: 'prompt',
      is_suggested: true,
      maximum: null,
      choices: 0,
    });
    expect(okBody<DocumentView>(await post('/comfyui/document', { document: textToImage() })).kind).toBe('image');
    expect(await post('/comfyui/document', { document: '{' })).toMatchObject(
      problem('document', /This is no JSON\. Paste the whole workflow/),
    );
    const deep = `{"1": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    expect(await post('/comfyui/document', { document: deep })).toMatchObject(
      problem('document', /^The workflow is nested/),
    );
    expect(await post('/comfyui/document', {})).toMatchObject(
      problem('document', /must be a workflow in the API format/),
    );
    expect(await post('/comfyui/document', { document: { nodes: [] } })).toMatchObject(
      problem('document', /Export \(API\)/),
    );
  });

  it('asks the machine which values its nodes take, and says what is missing there', async () => {
    const workflow = textToImage() as Record<string, { inputs: Record<string, unknown> }>;
    Object.assign(workflow['4']?.inputs ?? {}, { ckpt_name: 'flux1-dev.safetensors' });
    const document = { ...workflow, '12': { class_type: 'FaceDetailer', inputs: { image: ['8', 0], strength: 0.5 } } };
    const view = okBody<DocumentView>(await post('/comfyui/document', { document }));
    expect(view.problems).toEqual([
      'Load Checkpoint: ckpt_name is flux1-dev.safetensors, which the machine does not have.',
      'The machine has no node FaceDetailer. Install it there.',
    ]);
    const field = (target: string) => view.fields.find((one) => one.target === target);
    expect(field('3.sampler_name')).toMatchObject({ type: 'text', choices: 2 });
    expect(field('4.ckpt_name')).toMatchObject({ type: 'text', choices: 0 });
    expect(field('3.cfg')).toMatchObject({ type: 'number', maximum: 24 });
    const chosen = [
      ...fields,
      { target: '3.sampler_name', name: 'sampler' },
      { target: '3.cfg', name: 'cfg', maximum: 24 },
    ];
    okBody(await post('/comfyui/documents', { ...portrait(), id: 'exact', fields: chosen }));
    const { json } = await client.call('GET', '/v1/models/comfyui/exact');
    expect(json.input_schema.properties).toMatchObject({
      sampler: { type: 'string', enum: ['euler', 'dpmpp_2m'], default: 'euler' },
      cfg: { type: 'number', minimum: 0, maximum: 24, default: 8 },
      steps: { type: 'integer', minimum: 1, maximum: 40, default: 20 },
    });
    comfy.instead('result', 'cut');
    expect(okBody<DocumentView>(await post('/comfyui/document', { document: textToImage() })).problems).toEqual([
      'The machine did not say which values its nodes take.',
    ]);
    comfy.instead('result', ...Array.from({ length: 7 }, () => ({ status: 404, text: '' })));
    expect(okBody<DocumentView>(await post('/comfyui/document', { document: textToImage() }))).toMatchObject({
      kind: 'image',
      problems: [],
    });
  });

  it('runs a workflow as a model within a second, free where that was typed', async () => {
    expect((await generate('comfyui/portrait', { prompt: 'A bay' })).status).toBe(404);
    expect(okBody(await post('/comfyui/documents', portrait()))).toEqual({ added: ['comfyui/portrait'] });
    const { status, json } = await generate('comfyui/portrait', { prompt: 'A bay', steps: 12 });
    expect({ status, json }).toMatchObject({
      status: 202,
      json: { status: 'succeeded', cost: { exact: '0.000000' }, output: [{ type: 'image' }] },
    });
    expect(comfy.machine.accepted.at(-1)?.prompt).toMatchObject({
      '6': { inputs: { text: 'A bay' } },
      '3': { inputs: { steps: 12 } },
    });
    const refused = await generate('comfyui/portrait', { prompt: 'A bay', steps: 41 });
    expect(refused).toMatchObject({ status: 422, json: { error: { param: 'input.steps' } } });
    const [entry] = okBody<Page<AuditView>>(await operator.get('/dash/admin/audit')).data;
    expect(entry).toMatchObject({
      action: 'provider.models.add',
      subject: 'comfyui',
      details: { models: ['comfyui/portrait'], fields: ['prompt', 'steps'] },
    });
    expect(JSON.stringify(entry)).not.toContain('KSampler');
  });

  it('has one model of an id: adding it again takes the new workflow and price', async () => {
    const again = { ...portrait(), fields: fields.slice(0, 1), price: [{ unit: 'image', amount: '0.02', per: 1 }] };
    okBody(await post('/comfyui/documents', again));
    const { json } = await client.call('GET', '/v1/models/comfyui/portrait');
    expect(Object.keys(json.input_schema.properties)).toEqual(['prompt']);
    expect(json.pricing).toMatchObject([{ unit: 'image', amount: '0.02' }]);
    expect((await generate('comfyui/portrait', { prompt: 'A bay' })).json.cost.exact).toBe('0.020000');
  });

  it.each<[string, object, string, RegExp]>([
    ['no field', { fields: [] }, 'fields', /Tick at least one field/],
    ['fields that are none', { fields: 'all' }, 'fields', /Tick at most/],
    [
      'a most that is no number',
      { fields: [{ target: '3.steps', name: 'steps', maximum: 'many' }] },
      'fields',
      /must be a number/,
    ],
    ['no price', { price: undefined }, 'price', /needs at least one amount/],
    ['a price in words', { price: [{ unit: 'image', amount: 'free', per: 1 }] }, 'price', /must be a decimal/],
    ['a kind that is no file', { kind: 'chat' }, 'kind', /must be one of image, video, audio/],
    ['an id that is none', { id: '..' }, 'id', /The id must have/],
  ])('takes no model with %s', async (_, wrong, param, message) => {
    expect(await post('/comfyui/documents', { ...portrait(), ...wrong })).toMatchObject(problem(param, message));
  });

  it('is for operators alone, and only where models are documents', async () => {
    const other = await ownerOfNew(test, 'Other');
    for (const path of ['document', 'documents'])
      expect((await other.post(`/dash/admin/providers/comfyui/${path}`, portrait())).status).toBe(404);
    expect((await post('/nobody/document', portrait())).status).toBe(404);
  });
});

describe('a Stable Diffusion web UI', () => {
  it('offers its checkpoints as models for images, and no others', async () => {
    const place = { preset: 'automatic1111', base_url: web_ui.url, allow_private: true };
    expect(okBody(await post('', place))).toMatchObject({ name: 'automatic1111' });
    const offer = await offerOf('automatic1111');
    expect(offer).toMatchObject({ may_type: false, document: null });
    expect(offer.models.map(({ id, kind, kinds }) => ({ id, kind, kinds }))).toEqual([
      { id: 'automatic1111/dreamshaper_8', kind: 'image', kinds: [] },
      { id: 'automatic1111/two-words', kind: 'image', kinds: [] },
      { id: 'automatic1111/current', kind: 'image', kinds: [] },
    ]);
    const price = [{ unit: 'image', amount: '0', per: 1 }];
    expect(
      await post('/automatic1111/models', { models: [{ upstream_model: 'gone', kind: 'image', price }] }),
    ).toMatchObject(problem('models', /is not in the provider's list/));
    expect(await post('/automatic1111/document', { document: textToImage() })).toMatchObject(
      problem('document', /in its list/),
    );
    const models = ['dreamshaper_8', 'two words', 'current'].map((upstream_model) => ({ upstream_model, price }));
    okBody(await post('/automatic1111/models', { models }));
    const { json } = await generate('automatic1111/dreamshaper_8', { prompt: 'A bay', n: 2 });
    expect(json).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }, { type: 'image' }] });
    expect(web_ui.requestsFor('submit').at(-1)?.json).toMatchObject({
      override_settings: { sd_model_checkpoint: 'dreamshaper_8' },
      width: 1024,
      n_iter: 2,
    });
  });
});
