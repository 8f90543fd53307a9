/** Headgate as `npm run serve` runs it, for the benchmark: what it is to serve comes as the first message. */
import { startServe, type ServeOptions } from '../../scripts/serve/start-serve.ts';

process.once('message', async (options: ServeOptions) => {
  const serve = await startServe({ ...options, onLog: (line) => console.error(line) });
  process.send?.({ port: Number(new URL(serve.url).port), workerdPid: serve.workerdPid() });
  process.once('disconnect', async () => {
    await serve.stop();
    process.exit();
  });
});
