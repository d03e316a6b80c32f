import { runService } from './main/service.ts';

await runService();
