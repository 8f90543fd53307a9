import { isolateConfig } from '../config/isolate-config.ts';
import { isolateId } from '../runtime/deployment.ts';
import type { AdminApp } from './context.ts';
import { serve } from './serve.ts';

/** Current release, as in package.json. */
const RELEASE = '0.1.0';

export function addIsolateRoutes(app: AdminApp): void {
  serve(app, 'getIsolate', () => {
    const { all, waited } = isolateConfig.reads;
    const body = {
      id: isolateId(),
      release: RELEASE,
      config_reads: all,
      config_waits: waited,
    };
    return Promise.resolve({ status: 200, body });
  });
}
