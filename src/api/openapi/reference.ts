import type { Catalog, CatalogHolder } from '../../catalog/catalog.ts';
import { isMediaKind } from '../../catalog/model.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { buildOpenApi, type MediaModel } from './document.ts';

/** The parts of the app that the document is made from. */
type Parts = { readonly catalog: CatalogHolder; base_url(): string };

/** GET /openapi.json: the endpoints of this service with the models that it has right now. */
export function openApiEndpoint<App extends Parts>(endpoints: () => readonly Endpoint<App>[]): Endpoint<App> {
  let latest: { catalog: Catalog; base_url: string; body: string } | undefined;
  return {
    method: 'GET',
    path: '/openapi.json',
    public: true,
    lenient_query: true,
    docs: {
      tag: 'Service',
      summary: 'Get this document',
      description: 'The API of this service, with the models that it has right now. No key is needed.',
      responses: { 200: { description: 'OpenAPI 3.1.', schema: { type: 'object' } } },
    },
    handle: (app) => {
      const catalog = app.catalog.current;
      const base_url = app.base_url();
      if (latest?.catalog !== catalog || latest.base_url !== base_url) {
        const document = buildOpenApi(endpoints(), { base_url, models: mediaModels(catalog) });
        latest = { catalog, base_url, body: JSON.stringify(document) };
      }
      return { status: 200, body: latest.body, headers: { 'cache-control': 'no-cache' } };
    },
  };
}

/** The listed models of POST /v1/generate. */
export function mediaModels(catalog: Catalog): MediaModel[] {
  return [...catalog.models.values()].filter((model) => isMediaKind(model.kind) && !model.hidden);
}
