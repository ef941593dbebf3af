BEGIN TRANSACTION;
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'fd8edc79db61','ada','What is a good diet?','2026-11-25T13:28:26.117283+00:00','2026-11-25T13:28:26.135041+00:00');
INSERT INTO "conversations" VALUES(2,'6c29c8d30845','bob','Work','2026-11-25T13:28:26.153307+00:00','2026-11-25T13:28:26.154014+00:00');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'2bf450352237','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:26.090175+00:00','2026-11-25T13:28:26.090175+00:00');
INSERT INTO "facts" VALUES(2,'e4b13eccb41a','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:26.101005+00:00','2026-11-25T13:28:26.102252+00:00');
INSERT INTO "facts" VALUES(3,'ef496ab66aaa','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:26.103777+00:00','2026-11-25T13:28:26.103777+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,1);
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'56fcbaebbf2d','fd8edc79db61','57bf05249f4c','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"56fcbaebbf2d","created":"2026-11-25T13:28:26.118262Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":""}],"digests":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'3c8015733be5','fd8edc79db61','57bf05249f4c','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"3c8015733be5","created":"2026-11-25T13:28:26.134792Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[],"digests":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'d80b8b9ba2d2','6c29c8d30845','57bf05249f4c','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1},"id":"d80b8b9ba2d2","created":"2026-11-25T13:28:26.153750Z","status":"done","step":"","intent":"question","question":"","rewritten":false,"facts":[],"draft":"","queries":[],"passages":[],"digests":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages"},"own_answer":"","pool":[],"sentences":[],"citations":[],"offers":[],"events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$iN6uK4ZV4/mkcFtvY8zr2A==$utrCWoOUTtKdD7wAUwPzn0qnchLA4Ke8NAWvIgl7BZw=','2026-11-25T13:28:28.337111+00:00');
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
COMMIT;
