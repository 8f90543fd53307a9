// Runs the calls in a Worker, for each request to it.
import { manyCalls } from './many-calls.mjs';

export default {
  fetch: async (request) => new Response(`served ${await manyCalls(await request.json())}`),
};
