/** Headgate as `npm run serve` runs it, for the benchmark: what it is to serve comes as the first message. */
import { once } from 'node:events';
import { startServe, type ServeOptions } from '../../scripts/serve/start-serve.ts';

const [options] = (await once(process, 'message')) as [ServeOptions];
const serve = await startServe({ ...options, onLog: (line) => console.error(line) });
process.send?.({ port: Number(new URL(serve.url).port), workerdPid: serve.workerdPid() });
await once(process, 'disconnect');
await serve.stop();
