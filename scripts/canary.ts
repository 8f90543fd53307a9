import { runCanaryCommand } from './canary/command.ts';

process.exitCode = await runCanaryCommand(process.argv.slice(2), process.env, 'npm run canary --');
