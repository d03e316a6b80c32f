import type { Command } from 'commander';
import { apiOverHttp } from '../mcp/over-http.ts';
import { openService, takesService } from './caller/service.ts';

/**
 * Serves the tools of POST /mcp over stdin and stdout, for clients that start a program. It ends when the client closes
 * stdin.
 */
export function mcpCommand(command: Command): void {
  takesService(command).action(async (options: { url?: string }) => {
    const api = apiOverHttp(openService(options.url));
    const [{ serveStdio }, { makeMcpServer }] = await Promise.all([
      import('@modelcontextprotocol/server/stdio'),
      import('../mcp/server.ts'),
    ]);
    serveStdio(() => makeMcpServer(api));
  });
}
