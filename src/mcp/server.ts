import { McpServer } from '@modelcontextprotocol/server';
import package_json from '../../package.json' with { type: 'json' };
import type { Api } from './api.ts';
import { addTools } from './tools.ts';

const instructions =
  'Medley runs chat, image, video and audio models for one account balance. Find a model with list_models, read its ' +
  'input_schema with describe_model, then call generate. Tasks cost money; estimate says how much.';

/** Makes a server with the tools of a key, for one request or one connection. */
export function makeMcpServer(api: Api): McpServer {
  const { version } = package_json;
  const server = new McpServer({ name: 'medley', title: 'Medley', version }, { instructions });
  addTools(server, api);
  return server;
}
