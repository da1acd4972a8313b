'use strict';
// The line protocol between a client program and the test that runs it: one line "PASS name" or "FAIL name: why" for
// each check, "CALL what" to have something done to the server, "END count" at the end.
const readline = require('readline');

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const checks = [];

function check(name, run) {
  checks.push({ name, run });
}

async function call(what) {
  process.stdout.write(`CALL ${what}\n`);
  const { value } = await answers.next();
  if (value === undefined || !value.startsWith('OK')) throw new Error(`CALL ${what} was answered ${value}`);
}

async function eventually(condition, what, seconds = 20) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// within fails when the promise takes longer, so that a lost answer ends one check and not the whole program.
function within(seconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what}`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function run() {
  let failed = 0;
  for (const { name, run } of checks) {
    try {
      await within(60, 'the check', run());
      process.stdout.write(`PASS ${name}\n`);
    } catch (err) {
      failed++;
      const where = (String(err.stack).match(/interop\.js:(\d+)/) || [])[1];
      process.stdout.write(`FAIL ${name}: line ${where}: ${String(err.message).replace(/\s+/g, ' ')}\n`);
    }
  }
  process.stdout.write(`END ${checks.length}\n`);
  process.exit(failed ? 1 : 0);
}

module.exports = { check, call, eventually, within, run };
