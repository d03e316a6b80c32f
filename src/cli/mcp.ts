import type { Command } from 'commander';
import { readServiceOfCaller } from '../config.ts';
import { apiOverHttp } from '../mcp/over-http.ts';

/**
 * Serves the tools of POST /mcp over stdin and stdout, for clients that start a program. It ends when the client closes
 * stdin.
 */
export function mcpCommand(command: Command): void {
  command.action(async () => {
    const api = apiOverHttp(readServiceOfCaller());
    const [{ serveStdio }, { makeMcpServer }] = await Promise.all([
      import('@modelcontextprotocol/server/stdio'),
      import('../mcp/server.ts'),
    ]);
    serveStdio(() => makeMcpServer(api));
  });
}
