// Runs the calls in a process of its own.
import { manyCalls } from './many-calls.mjs';

console.log(`served ${await manyCalls(JSON.parse(process.argv[2]))}`);
